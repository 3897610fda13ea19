"""The verdict table, row by row."""

import itertools

import pytest

from pool.model import Blame as B
from proxy.gateway.refusals import Refusal
from proxy.gateway.refusals import RefusalKind as K
from proxy.verdict import TABLE, Circuit, End, Seen, Stage, judge

OK, BAD, MUTE = Circuit.SUCCESS, Circuit.FAILURE, Circuit.NEUTRAL


def refused(kind, **more):
    return Seen(Stage.REFUSED, 429, refusal=Refusal(kind, "said"), **more)


def inside(kind, **more):
    return Seen(Stage.POURED, 200, refusal=Refusal(kind, "said"), error_in_stream=True, stream=True, **more)


def poured(status=200, end=End.COMPLETE, *, semantic=True, stream=True, refusal=None):
    return Seen(Stage.POURED, status, end, refusal, semantic=semantic, stream=stream)


ROWS = [
    # seen, kind, blame, circuit, retryable, ambiguous, retires
    (Seen(Stage.NO_HEAD, end=End.CLIENT_GONE), "client_gone", B.CLIENT, MUTE, False, False, False),
    (poured(end=End.CLIENT_GONE), "client_gone", B.CLIENT, MUTE, False, False, False),
    (poured(500, End.CLIENT_GONE), "client_gone", B.CLIENT, MUTE, False, False, False),
    (Seen(Stage.NO_HEAD, end=End.STOPPED), "stopped", B.OURSELVES, MUTE, False, False, False),
    (poured(end=End.STOPPED), "stopped", B.OURSELVES, MUTE, False, False, False),
    (Seen(Stage.CONNECT_FAILED), "connect_failed", B.UPSTREAM, BAD, True, False, False),
    (Seen(Stage.TLS_FAILED), "tls_failed", B.UPSTREAM, BAD, False, False, False),
    (Seen(Stage.PORTAL), "portal", B.NONE, MUTE, False, False, False),
    (Seen(Stage.NO_HEAD), "no_head", B.UPSTREAM, BAD, False, True, False),
    (Seen(Stage.BAD_HEAD), "bad_head", B.UPSTREAM, BAD, False, False, False),
    (inside(K.OVERLOAD), "overload_in_stream", B.ROUTE, BAD, False, False, True),
    (inside(K.LIMIT), "limit_in_stream", B.LIMIT, MUTE, False, False, False),
    (inside(K.UPSTREAM, semantic=True), "error_in_stream", B.UPSTREAM, BAD, False, False, False),
    (inside(K.CLIENT), "refused_in_stream", B.CLIENT, MUTE, False, False, False),
    (inside(K.CONTEXT), "refused_in_stream", B.CLIENT, MUTE, False, False, False),
    (refused(K.LIMIT), "limit", B.LIMIT, MUTE, False, False, False),
    (refused(K.OVERLOAD), "overload", B.ROUTE, BAD, True, False, True),
    (refused(K.AUTH), "auth", B.CLIENT, MUTE, False, False, False),
    (refused(K.MODEL), "model", B.CLIENT, MUTE, False, False, False),
    (refused(K.PROTOCOL), "protocol", B.CLIENT, MUTE, False, False, False),
    (refused(K.SESSION), "session", B.OURSELVES, MUTE, True, False, False),
    (refused(K.SESSION, rewrote=False), "session", B.CLIENT, MUTE, False, False, False),
    (refused(K.CONTEXT), "context", B.CLIENT, MUTE, False, False, False),
    (refused(K.BLOCKED), "blocked", B.CLIENT, MUTE, False, False, False),
    (refused(K.CLIENT), "client_error", B.CLIENT, MUTE, False, False, False),
    (refused(K.UPSTREAM), "refused_upstream", B.UPSTREAM, MUTE, False, False, False),
    (
        Seen(Stage.REFUSED, 503, refusal=Refusal(K.UPSTREAM, "unavailable")),
        "server_error",
        B.UPSTREAM,
        BAD,
        False,
        True,
        False,
    ),
    (poured(529, refusal=Refusal(K.OVERLOAD, "said")), "overload", B.ROUTE, BAD, False, False, True),
    (poured(500, refusal=Refusal(K.UPSTREAM, "said")), "server_error", B.UPSTREAM, BAD, False, False, False),
    (poured(401), "auth", B.CLIENT, MUTE, False, False, False),
    (poured(403), "auth", B.CLIENT, MUTE, False, False, False),
    (poured(429), "refused_upstream", B.UPSTREAM, MUTE, False, False, False),
    (poured(404), "client_error", B.CLIENT, MUTE, False, False, False),
    (poured(503), "server_error", B.UPSTREAM, BAD, False, False, False),
    (poured(end=End.TRUNCATED), "truncated", B.UPSTREAM, OK, False, False, False),
    (poured(end=End.TRUNCATED, semantic=False), "stream_closed", B.UPSTREAM, BAD, False, False, False),
    (
        poured(end=End.TRUNCATED, semantic=False, stream=False),
        "stream_closed",
        B.UPSTREAM,
        BAD,
        False,
        False,
        False,
    ),
    (poured(307), "moved", B.NONE, MUTE, False, False, False),
    (poured(), "ok", B.NONE, OK, False, False, False),
    (poured(semantic=False, stream=False), "ok", B.NONE, OK, False, False, False),
    (poured(semantic=False), "empty", B.NONE, OK, False, False, False),
    (Seen(Stage.REFUSED, 429), "unknown", B.NONE, MUTE, False, False, False),
]


@pytest.mark.parametrize(
    ("seen", "kind", "blame", "circuit", "retryable", "ambiguous", "retires"), ROWS
)  # fmt: skip
def test_each_row(seen, kind, blame, circuit, retryable, ambiguous, retires):
    found = judge(seen)
    assert (found.kind, found.blame, found.circuit) == (kind, blame, circuit)
    assert (found.retryable, found.ambiguous, found.retires) == (retryable, ambiguous, retires)


def test_every_row_of_the_table_is_reached_by_a_test():
    reached = {judge(row[0]).kind for row in ROWS}
    assert {row.verdict.kind for row in TABLE} == reached


def test_the_code_is_the_refusals_own():
    assert judge(refused(K.LIMIT)).code == "said"
    assert judge(Seen(Stage.TLS_FAILED)).code == "upstream_tls"


def every_case():
    kinds = [None, *(Refusal(kind, "c") for kind in K)]
    flags = (True, False)
    for stage, end, refusal, error, semantic, stream, rewrote in itertools.product(
        Stage, End, kinds, flags, flags, flags, flags
    ):
        for status in (None, 200, 302, 429, 503):
            yield Seen(stage, status, end, refusal, error, semantic, stream, rewrote)


def test_only_the_routes_own_refusal_retires_and_nothing_poured_is_sent_again():
    for seen in every_case():
        found = judge(seen)
        if found.retires:
            assert found.blame is B.ROUTE
            assert seen.refusal is not None
            assert seen.refusal.kind is K.OVERLOAD
        if seen.stage is Stage.POURED:
            assert not found.retryable
            assert not found.ambiguous
        if seen.refusal is not None and seen.refusal.kind is K.LIMIT and found.blame is B.LIMIT:
            assert found.circuit is MUTE


def test_a_written_request_is_sent_again_only_after_an_explicit_refusal():
    for seen in every_case():
        found = judge(seen)
        if found.retryable and seen.stage is not Stage.CONNECT_FAILED:
            assert seen.refusal is not None
            assert seen.refusal.kind in {K.OVERLOAD, K.SESSION}


def test_only_what_a_refusal_said_retires_an_id():
    """The pool is told of a refused attempt from its refusal; no other row may retire."""
    assert all(row.refusal is not None for row in TABLE if row.verdict.retires)
