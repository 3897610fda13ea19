"""The errors that ocpool itself makes: one small tree, each with its status and code. Only ``edge`` answers with them.

The body has the shape of the OpenAI API's errors, so that every client can show it.
"""

import orjson


class ProxyError(Exception):
    """An error of ours: ``status`` and ``code`` are part of the contract, ``message`` says what to do."""

    status = 500
    code = "internal_error"
    type = "ocpool_error"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    def body(self) -> bytes:
        """The JSON answer, in the OpenAI error shape."""
        return error_body(self.message, self.code, self.type)


def error_body(message: str, code: str, kind: str = "ocpool_error") -> bytes:
    """An error object in the OpenAI shape."""
    return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


class ClientError(ProxyError):
    """The request cannot be served as it came."""

    status = 400
    code = "bad_request"
    type = "invalid_request_error"


class BadTarget(ClientError):
    """A request target that a reverse proxy must not follow (RFC 9112, section 3.2)."""

    code = "bad_target"


class BadRequest(ClientError):
    """A request that is not HTTP as we can relay it."""

    code = "bad_request"


class HeadTooLarge(ClientError):
    """A request line or field beyond our limits."""

    status = 431
    code = "head_too_large"


class BodyTooLarge(ClientError):
    """A routed body over ``listen.max_body_bytes``."""

    status = 413
    code = "body_too_large"


class ClientGone(ClientError):
    """The client left while it was sending; there is nobody to answer. The status is for logs (nginx's 499)."""

    status = 499
    code = "client_gone"


class UpgradeRefused(ClientError):
    """WebSocket is not spoken here; clients fall back to plain HTTP at once on a 426."""

    status = 426
    code = "upgrade_refused"


class Forbidden(ClientError):
    """A Host or Origin outside the allow-list."""

    status = 403
    code = "forbidden"


class TokenRefused(ClientError):
    """The listener's token is missing or wrong."""

    status = 401
    code = "token_refused"


class Stopping(ProxyError):
    """The daemon is shutting down."""

    status = 503
    code = "shutting_down"


class UpstreamError(ProxyError):
    """No answer could be had from the upstream. ``written`` tells whether any byte of the request left."""

    status = 502
    code = "upstream_error"
    type = "upstream_error"

    def __init__(self, message: str, *, written: bool = False) -> None:
        super().__init__(message)
        self.written = written


class NameNotResolved(UpstreamError):
    """DNS has no address for the upstream."""

    code = "upstream_dns_failed"


class ConnectFailed(UpstreamError):
    """No connection could be made."""

    code = "upstream_connect_failed"


class ConnectTimedOut(UpstreamError):
    """``upstream.connect_timeout_ms`` passed."""

    status = 504
    code = "upstream_connect_timeout"


class TlsFailed(UpstreamError):
    """The upstream's certificate or handshake was not acceptable; there is no way to switch that off."""

    code = "upstream_tls_failed"


class CaptivePortal(UpstreamError):
    """A web page answered in the gateway's place: this network wants a log-in, or the address is not the gateway's."""

    code = "captive_portal"


class ClosedEarly(UpstreamError):
    """The connection ended before a response head."""

    code = "upstream_closed"


class BadResponse(UpstreamError):
    """The answer is not HTTP/1.1 as it can be relayed safely."""

    code = "upstream_bad_response"


class UpstreamTimedOut(UpstreamError):
    """A limit the user set (``stall.*``) passed before the head."""

    status = 504
    code = "upstream_timeout"
