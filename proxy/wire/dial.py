"""How a connection to the upstream is made: names resolved afresh, addresses raced, an HTTP proxy crossed if asked."""

import asyncio
import base64
import socket
import ssl
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

import aiohappyeyeballs

from proxy.errors import ConnectFailed, ConnectTimedOut, NameNotResolved, ProxyError, TlsFailed
from proxy.wire.connection import Connection

# A dead path is noticed by the kernel, not by a deadline of ours: half a minute of silence, then three probes. The
# user timeout is for bytes under way; it also ends an upload that the peer leaves unread, so it is long.
_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPALIVE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
_USER_TIMEOUT_MS = 900_000
_EYEBALLS_DELAY_S = 0.25  # RFC 8305's recommended connection attempt delay
_MAX_CONNECT_ANSWER = 16_384


class Origin:
    """Where the upstream is: scheme, host and port of ``upstream.base_url``, and the path put in front."""

    __slots__ = ("host", "host_field", "port", "prefix", "tls")

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self.tls = parts.scheme == "https"
        self.host = parts.hostname or ""
        self.port = parts.port or (443 if self.tls else 80)
        bare = f"[{self.host}]" if ":" in self.host else self.host
        usual = self.port == (443 if self.tls else 80)
        self.host_field = (bare if usual else f"{bare}:{self.port}").encode("idna" if not bare.isascii() else "ascii")
        self.prefix = parts.path.rstrip("/").encode()


async def dial(
    origin: Origin,
    factory: Callable[[], Connection],
    context: ssl.SSLContext | None,
    proxy: str | None,
    timeout_s: float,
) -> Connection:
    """Make one connection, TLS included, within ``timeout_s`` real seconds.

    Raises:
        UpstreamError: a subclass that names the phase: name, connect, TLS or time.
    """
    name = f"{origin.host}:{origin.port}"
    try:
        async with asyncio.timeout(timeout_s):
            return await _dial(origin, factory, context, proxy)
    except TimeoutError:
        raise ConnectTimedOut(
            f"No connection to {name} within upstream.connect_timeout_ms. Check the network, or raise the limit."
        ) from None
    except ProxyError:
        raise
    except ssl.SSLCertVerificationError as exc:
        raise TlsFailed(
            f"The certificate of {name} was refused: {exc.verify_message}. "
            "If your network inspects TLS, name its CA with upstream.ca_file."
        ) from None
    except ssl.SSLError as exc:
        raise TlsFailed(f"The TLS handshake with {name} failed: {exc.reason or 'unknown'}.") from None
    except OSError as exc:
        raise ConnectFailed(f"Cannot connect to {name}: {exc.strerror or type(exc).__name__}.") from None


async def _dial(
    origin: Origin, factory: Callable[[], Connection], context: ssl.SSLContext | None, proxy: str | None
) -> Connection:
    loop = asyncio.get_running_loop()
    if proxy is None:
        sock = await _connect(loop, origin.host, origin.port)
    else:
        sock = await _through(loop, proxy, origin)
    try:
        _tune(sock)
        _, protocol = await loop.create_connection(
            factory, sock=sock, ssl=context, server_hostname=origin.host if context else None
        )
    except BaseException:
        sock.close()
        raise
    return protocol


async def _connect(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except socket.gaierror as exc:
            raise NameNotResolved(
                f"The name {host} cannot be resolved ({exc.strerror}). Check the network and upstream.base_url."
            ) from None
    return await aiohappyeyeballs.start_connection(
        found, happy_eyeballs_delay=_EYEBALLS_DELAY_S, interleave=1, loop=loop
    )


async def _through(loop: asyncio.AbstractEventLoop, proxy: str, origin: Origin) -> socket.socket:
    """Open a tunnel with CONNECT (RFC 9110, section 9.3.6)."""
    parts = urlsplit(proxy)
    sock = await _connect(loop, parts.hostname or "", parts.port or 80)
    try:
        target = f"{origin.host}:{origin.port}"
        request = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n"
        if parts.username:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            request += f"Proxy-Authorization: Basic {base64.b64encode(pair).decode()}\r\n"
        await loop.sock_sendall(sock, request.encode() + b"\r\n")
        answer = b""
        while b"\r\n\r\n" not in answer:
            piece = await loop.sock_recv(sock, 1)  # not a byte too many: the tunnel begins behind the head
            if not piece or len(answer) > _MAX_CONNECT_ANSWER:
                raise ConnectFailed("upstream.proxy closed the connection instead of opening a tunnel.")
            answer += piece
        status = answer.split(b" ", 2)[1:2]
        if status != [b"200"]:
            code = status[0].decode("ascii", "replace")[:3] if status else "?"
            raise ConnectFailed(f"upstream.proxy refused the tunnel with status {code}.")
    except BaseException:
        sock.close()
        raise
    return sock


def _tune(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        number = getattr(socket, option, None)
        if number is not None:
            sock.setsockopt(socket.IPPROTO_TCP, number, value)
    user_timeout = getattr(socket, "TCP_USER_TIMEOUT", None)
    if user_timeout is not None:
        sock.setsockopt(socket.IPPROTO_TCP, user_timeout, _USER_TIMEOUT_MS)
