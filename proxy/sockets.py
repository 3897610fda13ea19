"""The listening sockets, and what the process needs to hold many of them."""

import contextlib
import errno
import os
import socket

_BACKLOG = 1024
_WANTED_FILES = 16_384


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
