"""What the load asks for, as bytes: the same request again and again, a numbered one, a stream, a large body."""

COMPLETIONS = b"/zen/go/v1/chat/completions"  # gets a conversation's id
MESSAGES = b"/zen/go/v1/messages"  # passes as it is
LARGE_BYTES = 10 * 2**20

_BODY = b'{"model":"bench","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"%b"}]%b}'
_SESSION = b"x-opencode-session: bench\r\n"


def _request(body: bytes, path: bytes = COMPLETIONS, session: bytes = _SESSION) -> bytes:
    return (
        b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer sk-bench-0123456789\r\n"
        b"User-Agent: bench/1\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b"
    ) % (path, session, len(body), body)


def small() -> bytes:
    """One small request of one conversation, which its header names."""
    return _request(_BODY % (b"hello " * 20, b""))


def opening(number: int) -> bytes:
    """The first request of a conversation like no other, with no header to name it."""
    return _request(_BODY % (b"task %d: " % number + b"hello " * 20, b""), session=b"")


def stream(every_ms: int) -> bytes:
    """A request for a stream without an end, one event each ``every_ms``."""
    return _request(_BODY % (b"hello " * 20, b',"stream":true,"every_ms":%d' % every_ms))


def large(path: bytes) -> bytes:
    """A request with a body of 10 MiB."""
    return _request(_BODY % (b"hello " * (LARGE_BYTES // 6), b""), path)
