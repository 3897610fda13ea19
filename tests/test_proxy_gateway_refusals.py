"""What a refusal means, after bodies that the gateway has been seen to send."""

import gzip
import json
import sys
import zlib

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.gateway.refusals import RefusalKind as K
from proxy.gateway.refusals import in_stream_error, read

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GO_PREFIX = "Error from provider (Console Go): "
RELAYED = "Upstream request failed: "


def e1(kind, message, **more):
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}, **more}).encode()


def e2(kind, message, **more):
    return json.dumps({"error": {"type": kind, "message": message, **more}}).encode()


MISSING = (
    "Request is missing x-opencode-session and cannot be routed efficiently. "
    "Please see https://opencode.ai/docs/go/#where-can-i-use-it"
)
OVERLOADED = RELAYED + "[overloaded] the server is overloaded; retry shortly"
RATE = RELAYED + "[rate_limit_exceeded] Rate limit exceeded. Please retry after a brief wait."

CASES = [
    # status, body, kind, code, limit
    (400, e1("MissingSessionID", MISSING), K.SESSION, "missing_session", None),
    (400, e1("MissingSessionID", GO_PREFIX + MISSING), K.SESSION, "missing_session", None),
    (400, e1("MissingSessionID", "no"), K.SESSION, "missing_session", None),
    (400, e2("bad_request", "x-session-affinity is not valid"), K.SESSION, "missing_session", None),
    (400, e2("bad_request", "X-OpenCode-Session has a bad format"), K.SESSION, "missing_session", None),
    (
        400,
        e1("ModelProtocolUnsupported", "Model does not support this protocol."),
        K.PROTOCOL,
        "model_protocol_unsupported",
        None,
    ),
    (400, e2("server_error", RELAYED + "Model is unavailable."), K.MODEL, "model", None),
    (
        400,
        e2("server_error", RELAYED + "Endpoint is unavailable."),
        K.UPSTREAM,
        "endpoint_unavailable",
        None,
    ),
    (
        400,
        e2("server_error", RELAYED + "This Go model requires Global regions. Select Global"),
        K.MODEL,
        "model",
        None,
    ),
    (
        400,
        e2(
            "invalid_request_error",
            RELAYED + "[invalid_request_error] tool billing has no parameters",
            param=None,
            code="invalid_request_error",
        ),
        K.CLIENT,
        "bad_request",
        None,
    ),
    (401, e1("AuthError", "Missing API key."), K.AUTH, "unauthorized", None),
    (401, e1("AuthError", "Invalid API key."), K.AUTH, "unauthorized", None),
    (401, e1("AuthError", "Request blocked by upstream provider"), K.AUTH, "unauthorized", None),
    (401, e1("ModelError", "Model nope-1 is not supported"), K.MODEL, "model", None),
    (
        401,
        e1("CreditsError", "Insufficient balance. Manage your billing here"),
        K.LIMIT,
        "credits",
        "credits",
    ),
    (401, e1("MonthlyLimitError", "Your workspace has reached its limit"), K.LIMIT, "monthly_limit", "monthly"),
    (401, e1("UserLimitError", "You have reached your limit"), K.LIMIT, "user_limit", "user"),
    (
        402,
        json.dumps({"type": "server_error", "message": RELAYED + "Insufficient account funds"}).encode(),
        K.LIMIT,
        "credits",
        "credits",
    ),
    (402, b"", K.LIMIT, "payment_required", "credits"),
    (403, e1("RegionError", "Not in your region"), K.AUTH, "region", None),
    (403, e1("DataPolicyError", "Not with your policy"), K.AUTH, "region", None),
    (
        403,
        e1("FreeTierError", "OpenCode's free tier can only be used from within OpenCode"),
        K.AUTH,
        "entitlement",
        None,
    ),
    (403, e1("EntitlementError", "OpenCode Go subscription required."), K.AUTH, "entitlement", None),
    (403, b"error code: 1010", K.BLOCKED, "cloudflare_1010", None),
    (403, b"<html><body>error code: 1010</body></html>", K.BLOCKED, "cloudflare_1010", None),
    (403, b"<!DOCTYPE html><title>Just a moment...</title>", K.BLOCKED, "cloudflare", None),
    (403, b"", K.AUTH, "forbidden", None),
    (404, b"<html>Not Found</html>", K.CLIENT, "bad_request", None),
    (410, e1("ModelDeprecated", "gone"), K.MODEL, "model", None),
    (410, b"", K.MODEL, "model_gone", None),
    (413, b"", K.CONTEXT, "request_too_large", None),
    (
        429,
        e1("RateLimitError", "Rate limit exceeded. Please try again later.", metadata={}),
        K.LIMIT,
        "rate_limit",
        "rate",
    ),
    (
        429,
        e1("FreeUsageLimitError", "Rate limit exceeded. Please try again later."),
        K.LIMIT,
        "free_usage_limit",
        "free",
    ),
    (429, e1("BlackUsageLimitError", "Limit"), K.LIMIT, "black_usage_limit", "black"),
    (
        429,
        e1(
            "GoUsageLimitError",
            "5-hour usage limit reached.",
            metadata={"workspace": "wrk_1", "limitName": "5 hour"},
        ),
        K.LIMIT,
        "go_usage_limit",
        "5 hour",
    ),
    (429, e1("GoUsageLimitError", "usage limit reached."), K.LIMIT, "go_usage_limit", "go"),
    (
        429,
        json.dumps(
            {
                "param": None,
                "code": "rate_limit_exceeded",
                "type": "rate_limit_error",
                "message": GO_PREFIX + RATE,
            }
        ).encode(),
        K.LIMIT,
        "rate_limit",
        "rate",
    ),
    (429, e2("rate_limit_error", RATE), K.LIMIT, "rate_limit", "rate"),
    (
        429,
        e2(
            "rate_limit_error",
            "Provider rate limit exceeded",
            code="provider_rate_limit_exceeded",
        ),
        K.LIMIT,
        "rate_limit",
        "rate",
    ),
    (429, e2("x", "You exceeded your current quota", code="insufficient_quota"), K.LIMIT, "quota", "quota"),
    (429, e2("x", "Quota exceeded for requests per minute"), K.LIMIT, "quota", "quota"),
    (429, b"error code: 1015", K.LIMIT, "cloudflare_1015", "rate"),
    (429, e2("rate_limit_error", OVERLOADED), K.OVERLOAD, "overloaded", None),
    (429, json.dumps({"message": OVERLOADED}).encode(), K.OVERLOAD, "overloaded", None),
    (429, e2("server_error", GO_PREFIX + OVERLOADED), K.OVERLOAD, "overloaded", None),
    (429, b"", K.OVERLOAD, "too_many_requests", None),
    (429, b"Too Many Requests", K.OVERLOAD, "too_many_requests", None),
    (429, e2("server_error", "try again"), K.OVERLOAD, "too_many_requests", None),
    (529, b"", K.OVERLOAD, "overloaded", None),
    (529, e1("overloaded_error", "Overloaded"), K.OVERLOAD, "overloaded", None),
    (503, e2("server_error", OVERLOADED), K.OVERLOAD, "overloaded", None),
    (503, b"the server is overloaded", K.OVERLOAD, "overloaded", None),
    (
        503,
        e2("api_error", "Inference routing is unavailable. Please retry later."),
        K.UPSTREAM,
        "unavailable",
        None,
    ),
    (503, e2("api_error", "Inference is temporarily unavailable"), K.UPSTREAM, "unavailable", None),
    (503, b"", K.UPSTREAM, "unavailable", None),
    (500, e1("error", "Internal server error"), K.UPSTREAM, "server_error", None),
    (500, e2("x", "GoUsageLimitError: monthly"), K.LIMIT, "usage_limit", "usage"),
    (500, e2("x", "maximum context length is 131072 tokens"), K.CONTEXT, "context_length", None),
    (400, e2("x", "no", code="context_length_exceeded"), K.CONTEXT, "context_length", None),
    (400, e2("x", "prompt is too long: 300000 tokens"), K.CONTEXT, "context_length", None),
    (503, e2("x", "context length exceeded"), K.CONTEXT, "context_length", None),
    (408, b"", K.UPSTREAM, "timeout", None),
    (422, b'{"detail":"x"}', K.CLIENT, "bad_request", None),
    (499, b"", K.CLIENT, "bad_request", None),
    (524, b"<html>A timeout occurred</html>", K.UPSTREAM, "unavailable", None),
    (599, b"", K.UPSTREAM, "server_error", None),
    (400, b'[{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"x"}}]', K.CLIENT, "bad_request", None),
    (429, b'{"error":"rate limit"}', K.LIMIT, "rate_limit", "rate"),
    (429, b'{"error":null,"message":"' + OVERLOADED.encode() + b'"}', K.OVERLOAD, "overloaded", None),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind", "code", "limit"), CASES)
def test_a_refusal_is_what_its_body_says(status, body, kind, code, limit):
    found = read(status, [(b"Content-Type", b"application/json")], body)
    assert (found.kind, found.code, found.limit) == (kind, code, limit)
    assert found.names_session is (kind is K.SESSION)


def test_a_configured_session_header_is_recognised_in_a_message():
    body = e2("bad_request", "bad value in x-route-key")
    assert read(400, [], body, session_header="X-Route-Key").names_session
    assert not read(400, [], body).names_session


@pytest.mark.parametrize(
    ("coding", "pack"),
    [
        (b"gzip", gzip.compress),
        (b"GZIP", gzip.compress),
        (b"deflate", zlib.compress),
        (b"deflate", lambda body: zlib.compress(body, wbits=-15)),
        (b"br", brotli.compress),
        (b"zstd", zstd.compress),
        (b"identity", lambda body: body),
    ],
)
def test_a_small_compressed_refusal_is_read_from_a_copy(coding, pack):
    body = e1("GoUsageLimitError", "x", metadata={"limitName": "weekly"})
    found = read(429, [(b"content-encoding", coding)], pack(body))
    assert (found.kind, found.limit) == (K.LIMIT, "weekly")


@pytest.mark.parametrize(
    ("coding", "body"), [(b"br", b"\x8b\x00"), (b"zstd", b"\x28"), (b"gzip", b"not gzip"), (b"gzip, br", b"x")]
)
def test_an_unread_429_blames_no_route(coding, body):
    found = read(429, [(b"content-encoding", coding), (b"retry-after", b"60")], body)
    assert (found.kind, found.code, found.retry_after_ms) == (K.UPSTREAM, "unread", 60_000)


@pytest.mark.parametrize(
    ("status", "kind"), [(529, K.OVERLOAD), (401, K.AUTH), (503, K.UPSTREAM), (400, K.CLIENT), (402, K.LIMIT)]
)
def test_another_unread_refusal_is_what_its_status_says(status, kind):
    assert read(status, [(b"content-encoding", b"br")], b"\x8b\x00").kind is kind


def test_a_compression_bomb_is_read_only_to_its_bound():
    bomb = gzip.compress(b" " * 50_000_000)
    assert read(529, [(b"content-encoding", b"gzip")], bomb).kind is K.OVERLOAD


def test_a_cut_body_is_read_as_text():
    body = e1("GoUsageLimitError", "usage limit reached")[:60]
    assert read(429, [], body).kind is K.LIMIT
    assert read(429, [(b"content-encoding", b"gzip")], gzip.compress(body)[:-6]).kind is K.LIMIT


@pytest.mark.parametrize(
    ("payload", "kind", "code"),
    [
        (e1("overloaded_error", "Overloaded"), K.OVERLOAD, "overloaded"),
        (e2("server_error", OVERLOADED), K.OVERLOAD, "overloaded"),
        (e2("rate_limit_error", RATE), K.LIMIT, "rate_limit"),
        (e1("GoUsageLimitError", "x"), K.LIMIT, "go_usage_limit"),
        (e2("server_error", "boom"), K.UPSTREAM, "server_error"),
        (e2("invalid_request_error", "bad"), K.CLIENT, "bad_request"),
        (b'{"error":{"code":429,"message":"slow down"}}', K.OVERLOAD, "too_many_requests"),
        (b'{"error":{"code":502,"message":"bad gateway"}}', K.UPSTREAM, "unavailable"),
        (b'{"error":"it broke"}', K.UPSTREAM, "server_error"),
        (json.dumps({"message": OVERLOADED}).encode(), K.OVERLOAD, "overloaded"),
        (b'{"type":"server_error","message":"x"}', K.UPSTREAM, "server_error"),
        (
            b'{"type":"error","code":"rate_limit_exceeded","message":"Rate limit"}',
            K.LIMIT,
            "rate_limit",
        ),
        (
            b'{"type":"response.failed","response":{"error":{"code":"server_error","message":"x"}}}',
            K.UPSTREAM,
            "server_error",
        ),
        (b'[{"error":{"code":503,"status":"UNAVAILABLE","message":"The model is overloaded."}}]',
         K.OVERLOAD, "overloaded"),
    ],
)  # fmt: skip
def test_an_error_inside_a_200_is_found(payload, kind, code):
    found = in_stream_error(payload)
    assert found is not None
    assert (found.kind, found.code) == (kind, code)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[DONE]",
        b'{"choices":[{"delta":{"content":"an \\"error\\" in text"}}]}',
        b'{"choices":[{"delta":{"content":"x"}}],"error":null}',
        b'{"error":null}',
        b'{"error":{}}',
        b'{"type":"message","role":"assistant","content":[{"text":"Upstream request failed: x"}]}',
        b'{"message":"Upstream request failed: x","choices":[]}',
        b'{"type":"ping","message":"no error"}',
        b'{"type":"response.created","response":{"error":null}}',
        b'{"choices":[{"delta":{"tool_calls":[{"function":{"name":"error"}}]}}]}',
        b'{"error": "cut',
        b'"error"',
        b'["error"]',
    ],
)
def test_what_only_mentions_an_error_is_none(payload):
    assert in_stream_error(payload) is None


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["error", "type", "message", "code", "metadata", "limitName", "response", "status"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(
    status=st.integers(400, 599),
    document=JSONISH,
    raw=st.binary(max_size=40),
    coding=st.sampled_from([b"", b"gzip", b"deflate", b"br", b", ,"]),
)
def test_no_body_raises(status, document, raw, coding):
    body = json.dumps(document).encode()
    for one in (body, raw, body[:-1]):
        read(status, [(b"content-encoding", coding)], one)
        in_stream_error(one)
