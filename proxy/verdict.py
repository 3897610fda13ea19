"""What became of an attempt: one table, and a function that finds the row.

An attempt ends in a stage (it never got a connection; it was refused; its answer was poured ...). The verdict names
whose fault it was, whether it may be sent again without the risk of a second bill, what it tells the circuit
breaker, and whether the id is retired. Latency is not judged here.
"""

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from pool.model import Blame
from proxy.gateway.refusals import Refusal, RefusalKind


class Stage(StrEnum):
    """How far an attempt came."""

    CONNECT_FAILED = "connect-failed"  # nothing of the request was written
    TLS_FAILED = "tls-failed"  # likewise: not the certificate we asked for
    NO_HEAD = "no-head"  # written, and the connection ended or timed out before a head
    BAD_HEAD = "bad-head"  # what came was no HTTP answer
    PORTAL = "portal"  # what came was a web page of somebody else's
    REFUSED = "refused"  # a refusal was gathered, nothing has been relayed
    POURED = "poured"  # the answer went to the client, whatever its status


class End(StrEnum):
    """How an attempt ended; pouring ends in exactly one of these."""

    COMPLETE = "complete"
    TRUNCATED = "truncated"
    CLIENT_GONE = "client_gone"
    STOPPED = "stopped"  # by us: a shutdown, or a limit that the user set


class Circuit(StrEnum):
    """The sample that an attempt gives the circuit breaker."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"


class Seen(NamedTuple):
    """What was seen of one attempt.

    ``refusal`` is what a status >= 400 said, or an error inside a 200 (then ``error_in_stream``). ``semantic``: an
    event with content, or the end of an answer that is no stream, was seen. ``rewrote``: the session field we sent
    was not the client's own.
    """

    stage: Stage
    status: int | None = None
    end: End = End.COMPLETE
    refusal: Refusal | None = None
    error_in_stream: bool = False
    semantic: bool = False
    stream: bool = False
    rewrote: bool = True


class Verdict(NamedTuple):
    """What an attempt was.

    ``retryable``: sending it again cannot bill it twice and may help. ``ambiguous``: it may help, but the first may
    have been billed (``recovery.replay_ambiguous``). ``code`` goes to events and, for our own errors, to clients.
    """

    kind: str
    blame: Blame
    circuit: Circuit
    code: str
    retryable: bool = False
    ambiguous: bool = False
    retires: bool = False


class Row(NamedTuple):
    """One row; the first that fits decides, and a condition left out (None, empty) fits everything."""

    verdict: Verdict
    stages: frozenset[Stage] = frozenset()
    ends: frozenset[End] = frozenset()
    refusal: RefusalKind | None = None
    in_stream: bool | None = None
    semantic: bool | None = None
    rewrote: bool | None = None
    statuses: range | None = None


def _at(*stages: Stage) -> frozenset[Stage]:
    return frozenset(stages)


_UP, _NONE, _CLIENT = Blame.UPSTREAM, Blame.NONE, Blame.CLIENT
_OK, _BAD, _MUTE = Circuit.SUCCESS, Circuit.FAILURE, Circuit.NEUTRAL
_POURED = _at(Stage.POURED)
_K = RefusalKind

TABLE: tuple[Row, ...] = (
    # Whoever left first decides: a client that is gone, or we ourselves, say nothing about the other side.
    Row(Verdict("client_gone", _CLIENT, _MUTE, "client_gone"), ends=frozenset({End.CLIENT_GONE})),
    Row(Verdict("stopped", Blame.OURSELVES, _MUTE, "stopped"), ends=frozenset({End.STOPPED})),
    # No answer.
    Row(
        Verdict("connect_failed", _UP, _BAD, "upstream_unreachable", retryable=True),
        _at(Stage.CONNECT_FAILED),
    ),
    Row(Verdict("tls_failed", _UP, _BAD, "upstream_tls"), _at(Stage.TLS_FAILED)),
    Row(Verdict("no_head", _UP, _BAD, "upstream_closed", ambiguous=True), _at(Stage.NO_HEAD)),
    Row(Verdict("bad_head", _UP, _BAD, "upstream_bad_answer"), _at(Stage.BAD_HEAD)),
    Row(Verdict("portal", _NONE, _MUTE, "captive_portal"), _at(Stage.PORTAL)),
    # An error inside a 200 that was on its way already: it can be blamed, never sent again.
    Row(
        Verdict("overload_in_stream", Blame.ROUTE, _BAD, "overloaded", retires=True),
        _POURED,
        refusal=_K.OVERLOAD,
        in_stream=True,
    ),
    Row(Verdict("limit_in_stream", Blame.LIMIT, _MUTE, "limit"), _POURED, refusal=_K.LIMIT, in_stream=True),
    Row(
        Verdict("error_in_stream", _UP, _BAD, "error_in_stream"),
        _POURED,
        refusal=_K.UPSTREAM,
        in_stream=True,
    ),
    Row(Verdict("refused_in_stream", _CLIENT, _MUTE, "error_in_stream"), _POURED, in_stream=True),
    # Refusals, by what they said.
    Row(Verdict("limit", Blame.LIMIT, _MUTE, "limit"), refusal=_K.LIMIT),
    Row(
        Verdict("overload", Blame.ROUTE, _BAD, "overloaded", retryable=True, retires=True),
        refusal=_K.OVERLOAD,
    ),
    Row(Verdict("auth", _CLIENT, _MUTE, "unauthorized"), refusal=_K.AUTH),
    Row(Verdict("model", _CLIENT, _MUTE, "model"), refusal=_K.MODEL),
    Row(Verdict("protocol", _CLIENT, _MUTE, "protocol"), refusal=_K.PROTOCOL),
    Row(
        Verdict("session", Blame.OURSELVES, _MUTE, "session", retryable=True),
        refusal=_K.SESSION,
        rewrote=True,
    ),
    Row(Verdict("session", _CLIENT, _MUTE, "session"), refusal=_K.SESSION),
    Row(Verdict("context", _CLIENT, _MUTE, "context"), refusal=_K.CONTEXT),
    Row(Verdict("blocked", _CLIENT, _MUTE, "blocked"), refusal=_K.BLOCKED),
    Row(Verdict("client_error", _CLIENT, _MUTE, "bad_request"), refusal=_K.CLIENT),
    Row(Verdict("refused_upstream", _UP, _MUTE, "upstream"), refusal=_K.UPSTREAM, statuses=range(400, 500)),
    Row(
        Verdict("server_error", _UP, _BAD, "server_error", ambiguous=True),
        refusal=_K.UPSTREAM,
    ),
    # A status that nobody has read: only what the number itself says.
    Row(Verdict("auth", _CLIENT, _MUTE, "unauthorized"), _POURED, statuses=range(401, 402)),
    Row(Verdict("auth", _CLIENT, _MUTE, "forbidden"), _POURED, statuses=range(403, 404)),
    Row(Verdict("refused_upstream", _UP, _MUTE, "unread"), _POURED, statuses=range(429, 430)),
    Row(Verdict("client_error", _CLIENT, _MUTE, "bad_request"), _POURED, statuses=range(400, 500)),
    Row(Verdict("server_error", _UP, _BAD, "server_error"), _POURED, statuses=range(500, 600)),
    # Answers.
    Row(
        Verdict("truncated", _UP, _OK, "truncated"),
        _POURED,
        frozenset({End.TRUNCATED}),
        semantic=True,
    ),
    Row(
        Verdict("stream_closed", _UP, _BAD, "stream_closed"),
        _POURED,
        frozenset({End.TRUNCATED}),
    ),
    Row(Verdict("moved", _NONE, _MUTE, "moved"), _POURED, statuses=range(300, 400)),
    Row(Verdict("ok", _NONE, _OK, "ok"), _POURED, semantic=True),
    Row(Verdict("empty", _NONE, _OK, "empty"), _POURED, in_stream=False),
    Row(Verdict("unknown", _NONE, _MUTE, "unknown")),
)


def _verdict_named(kind: str) -> Verdict:
    return next(row.verdict for row in TABLE if row.verdict.kind == kind)


# What nearly every attempt is: a 2xx that came whole without an error in it, with content or without.
OK, EMPTY = _verdict_named("ok"), _verdict_named("empty")


def judge(seen: Seen) -> Verdict:
    """The verdict on an attempt. Total: every combination has a row, and what was poured is never retryable."""
    refusal = seen.refusal
    if refusal is None and seen.stage is Stage.POURED and seen.end is End.COMPLETE and 200 <= (seen.status or 0) < 300:
        return OK if seen.semantic or not seen.stream else EMPTY
    verdict = _verdict(
        _Case(
            seen.stage,
            seen.end,
            refusal.kind if refusal is not None else None,
            seen.error_in_stream,
            # An answer that is no stream is all content, once it is whole.
            seen.semantic or (not seen.stream and seen.end is End.COMPLETE),
            seen.rewrote,
            seen.status or 0,
        )
    )
    if refusal is not None and verdict.kind not in {"client_gone", "stopped"}:
        return verdict._replace(code=refusal.code)
    return verdict


class _Case(NamedTuple):
    stage: Stage
    end: End
    refusal: RefusalKind | None
    in_stream: bool
    semantic: bool
    rewrote: bool
    status: int


@lru_cache(maxsize=1024)
def _verdict(case: _Case) -> Verdict:
    verdict = next(row.verdict for row in TABLE if _fits(row, case))  # the last row fits everything
    if case.stage is Stage.POURED and (verdict.retryable or verdict.ambiguous):
        return verdict._replace(retryable=False, ambiguous=False)
    return verdict


def _fits(row: Row, case: _Case) -> bool:
    return (
        (not row.stages or case.stage in row.stages)
        and (not row.ends or case.end in row.ends)
        and row.refusal in {None, case.refusal}
        and row.in_stream in {None, case.in_stream}
        and row.semantic in {None, case.semantic}
        and row.rewrote in {None, case.rewrote}
        and (row.statuses is None or case.status in row.statuses)
    )
