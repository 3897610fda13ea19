"""The listening sockets, made here or passed by the service manager, and what it takes to hold many connections."""

import contextlib
import errno
import os
import socket
from collections.abc import MutableMapping

from config.sections.listen import ListenSection, is_loopback
from proxy.logs import log

_FIRST_PASSED = 3  # SD_LISTEN_FDS_START of sd_listen_fds(3)
_UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_BACKLOG = 1024
_WANTED_FILES = 16_384


class NotListeningError(Exception):
    """There is nothing to listen on; ``why`` is one of the words below, or empty."""

    TAKEN = "taken"  # the address is in use
    OPEN = "open"  # other machines could reach us, and no setting says that they may

    def __init__(self, message: str, why: str = "") -> None:
        super().__init__(message)
        self.why = why


def listening(section: ListenSection) -> list[socket.socket]:
    """The sockets that were passed to us, else our own.

    Raises:
        NotListeningError: there are none, or they are open to others without a token.
    """
    try:
        sockets = passed()
        if not sockets:
            return bind(section.host, section.port)
    except OSError as exc:
        why = NotListeningError.TAKEN if exc.errno == errno.EADDRINUSE else ""
        raise NotListeningError(bind_problem(exc, section.host, section.port), why) from exc
    reached_at = beyond_this_machine(sockets)
    if reached_at and not (section.token or section.tokens or section.insecure):
        raise NotListeningError(
            f"the socket that was passed listens on {reached_at}, open to other machines, which needs listen.token,"
            " listen.tokens or an explicit listen.insecure = true.",
            NotListeningError.OPEN,
        )
    if section.port not in {sock.getsockname()[1] for sock in sockets}:
        log.warning(f"listen.port = {section.port} has no effect: the socket that was passed is {url_of(sockets[0])}.")
    return sockets


def bind(host: str, port: int) -> list[socket.socket]:
    """The listening sockets: the configured address, and ``[::1]`` beside the default one where IPv6 exists.

    Raises:
        OSError: EADDRINUSE when either address is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if host not in {"127.0.0.1", "localhost"}:
        return [_listening(family, host, port)]
    first = _listening(socket.AF_INET, "127.0.0.1", port)
    try:
        second = _listening(socket.AF_INET6, "::1", first.getsockname()[1])
    except OSError as exc:
        if exc.errno == errno.EADDRINUSE and port:
            first.close()
            raise
        return [first]
    return [first, second]


def _listening(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((host, port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def passed(environ: MutableMapping[str, str] = os.environ) -> list[socket.socket]:
    """The sockets that the service manager listens on for us (``LISTEN_FDS``, sd_listen_fds(3)); [] where it does not.

    They outlive this process, so that connections wait for the next one in place of being refused. The variables are
    taken out of the environment: they are for this process only.

    Raises:
        OSError: what was passed is no listening TCP socket.
    """
    pid, count = environ.pop("LISTEN_PID", ""), environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if pid != str(os.getpid()) or not count.isdecimal():
        return []
    sockets = []
    for fd in range(_FIRST_PASSED, _FIRST_PASSED + int(count)):
        sock = socket.socket(fileno=fd)
        if sock.family not in {socket.AF_INET, socket.AF_INET6} or not _listens(sock):
            raise OSError(errno.EINVAL, "no listening TCP socket", fd)
        sock.set_inheritable(False)
        sock.setblocking(False)
        sockets.append(sock)
    return sockets


def _listens(sock: socket.socket) -> bool:
    if sock.type != socket.SOCK_STREAM:
        return False
    return bool(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def beyond_this_machine(sockets: list[socket.socket]) -> str | None:
    """The first address among the sockets that other machines can reach."""
    addresses = [str(sock.getsockname()[0]) for sock in sockets]
    return next((address for address in addresses if not is_loopback(address)), None)


def url_of(sock: socket.socket, *, reachable: bool = False) -> str:
    """The base URL of a listening socket; ``reachable`` has this machine where the socket takes any address."""
    host, port = sock.getsockname()[:2]
    if reachable:
        host = _UNSPECIFIED.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bind_problem(exc: OSError, host: str, port: int) -> str:
    if exc.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken: is ocpool running already? Choose another with listen.port or --port."
    return f"cannot listen on {host}:{port} ({exc.strerror}): check listen.host and listen.port."


def raise_file_limit() -> None:
    """Allow as many open files as the system lets us: launchd starts a process with 256."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415  (not on Windows)

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
        if soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
