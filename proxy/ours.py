"""What ocpool itself says to a client of the relay: errors, preflights, and the fields it adds to an answer."""

from proxy.daemon import Daemon
from proxy.entry import Entry
from proxy.errors import ProxyError
from proxy.exchange import Exchange

_CORS_METHODS = b"GET, POST, OPTIONS"
_REASONS = {
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    413: b"Content Too Large",
    426: b"Upgrade Required",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    502: b"Bad Gateway",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
}


def error_answer(error: ProxyError, method: bytes, allowed: bytes = b"", *, close: bool) -> bytes:
    """An error of ours; ``allowed`` are fields as they stand in a head."""
    body = error.body()
    lines = [
        b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
        % (error.status, _REASONS.get(error.status, b"Error"), len(body)),
        allowed,
    ]
    if error.status == 426:
        lines.append(b"Upgrade: HTTP/1.1\r\n")
    if close:
        lines.append(b"Connection: close\r\n")
    lines.append(b"\r\n")
    if method != b"HEAD":
        lines.append(body)
    return b"".join(lines)


def preflight_answer(entry: Entry) -> bytes:
    """What a page of ``listen.allowed_origins`` may send; nothing for any other page."""
    headers = entry.head.seen.get(b"access-control-request-headers", b"")
    return (
        b"HTTP/1.1 204 No Content\r\nAccess-Control-Allow-Origin: %b\r\nVary: Origin\r\n"
        b"Access-Control-Allow-Methods: %b\r\nAccess-Control-Allow-Headers: %b\r\n"
        b"Access-Control-Max-Age: 600\r\n\r\n"
    ) % (entry.head.seen.get(b"origin", b""), _CORS_METHODS, headers)


def added_fields(daemon: Daemon, exchange: Exchange, allowed: bytes) -> bytes:
    """The fields that ocpool adds to an answer, and no others, as they stand in its head; ``allowed`` comes first."""
    start, resolved = exchange.start, exchange.resolved
    if start is None or resolved is None or not daemon.expose:
        return allowed
    said = (
        f"x-ocpool-conversation: {resolved.conversation.label}\r\nx-ocpool-match: {resolved.match}\r\n"
        f"x-ocpool-route: {start.source}\r\n"
    ).encode("latin-1", "replace")
    return allowed + said
