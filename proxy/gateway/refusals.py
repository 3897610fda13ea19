"""What the gateway means when it says no: one table from status, class, code and message to a kind of refusal.

The bodies come in two envelopes, ``{"type":"error","error":{"type":"<Class>","message":...}}`` and
``{"error":{"type","code","param","message"}}``, sometimes bare; relayed ones carry ``Error from provider (...):``,
``Upstream request failed:`` and the provider's own code in brackets. Who is to blame is decided in
``proxy/verdict.py``. Nothing here raises.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from proxy.gateway.envelopes import Said, in_stream, said
from proxy.gateway.fields import SESSION_FIELDS
from proxy.gateway.signals import read as read_signals


class RefusalKind(StrEnum):
    """What was refused, or what refused."""

    LIMIT = "limit"  # the account's or the key's: another id changes nothing
    OVERLOAD = "overload"  # this route's: another id may help
    AUTH = "auth"
    MODEL = "model"
    PROTOCOL = "protocol"
    SESSION = "session"  # the session field is missing or not to its taste
    CONTEXT = "context"
    BLOCKED = "blocked"  # by the network in front of the gateway, before it was reached
    CLIENT = "client"
    UPSTREAM = "upstream"


class Refusal(NamedTuple):
    """A refusal, read. ``limit`` names the window or the purse of a limit, ``retry_after_ms`` is in [0, a month]."""

    kind: RefusalKind
    code: str
    limit: str | None = None
    retry_after_ms: float | None = None
    names_session: bool = False


class Row(NamedTuple):
    """One row of the table; the first that fits decides. An empty condition fits everything.

    ``classes`` are compared whole with the error's type, code and bracketed code; ``phrases`` are looked for in its
    message. A row with both fits by either. All in lower case.
    """

    kind: RefusalKind
    code: str
    statuses: frozenset[int] = frozenset()
    classes: frozenset[str] = frozenset()
    phrases: tuple[str, ...] = ()
    limit: str | None = None


def _s(*statuses: int) -> frozenset[int]:
    return frozenset(statuses)


def _c(*classes: str) -> frozenset[str]:
    return frozenset(classes)


def _p(phrases: str) -> tuple[str, ...]:
    return tuple(phrases.split("|"))


_LIMIT_STATUSES = _s(401, 402, 403, 429, 500, 503, 529)
_SERVER = frozenset(range(500, 600))
_CLIENT = frozenset(range(400, 500))

_K = RefusalKind

TABLE: tuple[Row, ...] = (
    # Cloudflare stands in front and answers in plain text or HTML.
    Row(_K.BLOCKED, "cloudflare_1010", _s(403), phrases=_p("error code: 1010")),
    Row(_K.BLOCKED, "cloudflare", _s(403), phrases=_p("error code: 10|<title>just a moment")),
    Row(_K.LIMIT, "cloudflare_1015", _s(429), phrases=_p("error code: 1015"), limit="rate"),
    # The session field, by the error's class or by a field's name in its message.
    Row(
        _K.SESSION,
        "missing_session",
        _s(400, 403, 409, 422),
        classes=_c("missingsessionid", "invalidsessionid"),
        phrases=tuple(sorted(name.decode() for name in SESSION_FIELDS if b"session" in name)),
    ),
    # Limits by class, at any status: CreditsError and its like come with a 401.
    Row(_K.LIMIT, "go_usage_limit", classes=_c("gousagelimiterror"), limit="go"),
    Row(_K.LIMIT, "free_usage_limit", classes=_c("freeusagelimiterror"), limit="free"),
    Row(_K.LIMIT, "black_usage_limit", classes=_c("blackusagelimiterror"), limit="black"),
    Row(_K.LIMIT, "credits", classes=_c("creditserror"), limit="credits"),
    Row(_K.LIMIT, "monthly_limit", classes=_c("monthlylimiterror"), limit="monthly"),
    Row(_K.LIMIT, "user_limit", classes=_c("userlimiterror"), limit="user"),
    Row(
        _K.LIMIT,
        "quota",
        classes=_c("insufficient_quota", "quota_exceeded", "billing_hard_limit_reached", "billing_error"),
        limit="quota",
    ),
    # The context is the client's to cut, whatever status it comes with.
    Row(_K.CONTEXT, "context_length", classes=_c("context_length_exceeded", "prompt_too_long")),
    Row(
        _K.CONTEXT,
        "context_length",
        (_CLIENT | _SERVER) - _s(429),
        phrases=_p(
            "prompt_too_long|prompt is too long|maximum context length|context length exceeded"
            "|context_length_exceeded|exceeds the context window|request too large"
        ),
    ),
    Row(_K.CONTEXT, "request_too_large", _s(413)),
    # An overload by name comes before the rate limits, because it travels as type rate_limit_error too.
    Row(_K.OVERLOAD, "overloaded", _s(429) | _SERVER, classes=_c("overloaded", "overloaded_error")),
    Row(
        _K.LIMIT,
        "rate_limit",
        _LIMIT_STATUSES,
        classes=_c("ratelimiterror", "rate_limit_exceeded", "provider_rate_limit_exceeded"),
        limit="rate",
    ),
    Row(
        _K.LIMIT,
        "credits",
        _LIMIT_STATUSES,
        phrases=_p(
            "insufficient account funds|insufficient balance|insufficient funds|insufficient credit"
            "|available balance|out of credits|no payment method|billing"
        ),
        limit="credits",
    ),
    Row(
        _K.LIMIT,
        "usage_limit",
        _LIMIT_STATUSES,
        phrases=_p(
            "gousagelimiterror|freeusagelimiterror|blackusagelimiterror|usage limit|monthly limit"
            "|spending limit|weekly limit|daily limit|5 hour limit|limit reached"
        ),
        limit="usage",
    ),
    Row(
        _K.LIMIT,
        "quota",
        _LIMIT_STATUSES,
        phrases=_p("insufficient_quota|out of budget|quota exceeded|exceeded your current quota"),
        limit="quota",
    ),
    Row(_K.LIMIT, "rate_limit", _s(429), phrases=_p("rate limit|rate_limit_exceeded"), limit="rate"),
    Row(_K.LIMIT, "payment_required", _s(402), limit="credits"),
    Row(
        _K.PROTOCOL,
        "model_protocol_unsupported",
        _CLIENT - _s(429),
        classes=_c("modelprotocolunsupported"),
        phrases=_p("model does not support this protocol"),
    ),
    Row(
        _K.MODEL,
        "model",
        _CLIENT - _s(429),
        classes=_c("modelerror", "modeldeprecated", "model_not_found", "model_not_supported"),
        phrases=_p("model is unavailable|go model requires"),
    ),
    Row(_K.MODEL, "model_gone", _s(410)),
    Row(_K.UPSTREAM, "endpoint_unavailable", _s(400, 404), phrases=_p("endpoint is unavailable")),
    Row(_K.AUTH, "entitlement", _s(403), classes=_c("entitlementerror", "freetiererror")),
    Row(_K.AUTH, "region", _s(403), classes=_c("regionerror", "datapolicyerror")),
    Row(_K.AUTH, "unauthorized", _s(401)),
    Row(_K.AUTH, "forbidden", _s(403)),
    # What is left of the statuses that mean a crowd.
    Row(_K.OVERLOAD, "overloaded", _s(529)),
    Row(_K.OVERLOAD, "too_many_requests", _s(429)),
    Row(
        _K.OVERLOAD,
        "overloaded",
        _s(503),
        phrases=_p("overload|at capacity|over capacity|high demand|too busy|server is busy"),
    ),
    Row(_K.UPSTREAM, "timeout", _s(408)),
    Row(_K.CLIENT, "bad_request", _CLIENT),
    Row(_K.UPSTREAM, "unavailable", _s(502, 503, 504, 520, 521, 522, 523, 524)),
    Row(_K.UPSTREAM, "server_error", _SERVER),
)

_SESSION_HEADER = "x-opencode-session"


def read(
    status: int,
    fields: Iterable[tuple[bytes, bytes]],
    body: bytes,
    now_wall_ms: float | None = None,
    session_header: str = _SESSION_HEADER,
) -> Refusal:
    """Read a refusal (``status`` >= 400) from what was gathered of it; the body may be cut short.

    A body under a content coding that cannot be undone from a copy (anything but a small gzip or deflate) is judged
    by its status alone, and an unread 429 is nobody's in particular: it may be the account's limit.
    """
    fields = list(fields)
    words = said(fields, body)
    wait = read_signals(fields, now_wall_ms).retry_after_ms
    if not words.read and status == 429:
        return Refusal(_K.UPSTREAM, "unread", None, wait)
    return _refusal(status, words, wait, session_header)


def in_stream_error(body: bytes, session_header: str = _SESSION_HEADER) -> Refusal | None:
    """The error inside an answer that said 200: a JSON body, or the data of one server-sent event. None: no error."""
    words = in_stream(body)
    return None if words is None else _refusal(words.status or _status_of(words), words, None, session_header)


def _refusal(status: int, words: Said, wait: float | None, session_header: str) -> Refusal:
    for row in TABLE:
        if _fits(row, status, words, session_header):
            limit = (words.limit_name or row.limit) if row.kind is _K.LIMIT else None
            return Refusal(row.kind, row.code, limit, wait, row.kind is _K.SESSION)
    return Refusal(_K.UPSTREAM, "unexpected", None, wait)


def _fits(row: Row, status: int, words: Said, session_header: str) -> bool:
    if row.statuses and status not in row.statuses:
        return False
    if not row.classes and not row.phrases:
        return True
    if not row.classes.isdisjoint(words.classes) or any(phrase in words.message for phrase in row.phrases):
        return True
    return row.kind is _K.SESSION and session_header.lower() in words.message


def _status_of(words: Said) -> int:
    """The status an error would have had if it had come in time; only to find its row."""
    if any("overload" in word for word in words.classes):
        return 529
    if any("rate" in word and "limit" in word for word in words.classes):
        return 429
    return 400 if any("invalid_request" in word for word in words.classes) else 500
