"""One probe: a one-token request on an id, and what it found.

A probe is honest traffic: it says ``ocpool/<version>``, asks for a single token, and uses the account it is given.
What counts as fast is decided in ``pool/profiles``; here HTTP is read into facts.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import orjson

from config.settings import Settings
from pool.clock import Clock
from pool.model import ProbeResult
from pool.profiles.latency import PROMPT, ProbeFacts, classify
from pool.profiles.throughput import PacedFacts, grade
from proxy import __version__
from proxy.errors import UpstreamError
from proxy.gateway import portal, refusals, signals
from proxy.gateway.refusals import Refusal, RefusalKind
from proxy.paced import Paced, paced_body, read_stream
from proxy.tap import tokens
from proxy.targets import ProbeTarget
from proxy.wire.connection import Connection
from proxy.wire.head import Field, ResponseHead, request_head
from proxy.wire.pool import Upstream
from proxy.wire.receiver import End

USER_AGENT = b"ocpool/" + __version__.encode()

# An answer of one token is a few hundred bytes; a page of HTML need not be read to its end.
_ANSWER_BYTES = 65_536


@dataclass(slots=True)
class _Exchange:
    """How far a probe came."""

    began_ms: float
    written: bool = False
    head: ResponseHead | None = None
    headed_ms: float | None = None
    body: bytes | None = None
    paced: Paced | None = None


class Prober:
    """Sends probes over the daemon's own upstream. Never raises for what the world does."""

    def __init__(self, upstream: Upstream, clock: Clock, settings: Settings) -> None:
        self._upstream = upstream
        self._clock = clock
        self.reconfigure(settings)

    def reconfigure(self, settings: Settings) -> None:
        """Obey other settings from the next probe on."""
        self._settings = settings
        self._session_header = settings.upstream.session_header.encode("latin-1")

    async def probe(self, target: ProbeTarget, session_id: str, timeout_ms: float) -> ProbeResult:
        """Probe one id; ``timeout_ms`` covers connecting and the whole answer.

        ``wall_ms`` counts from the request to the answer's head, or until it was given up.
        """
        paced = self.paces(target)
        most = self._settings.probe_for(target.model).max_tokens
        body = paced_body(target.model, most) if paced else probe_body(target.api, target.model, most)
        fields = self._fields(target, session_id, len(body), paced=paced)
        exchange = _Exchange(self._clock.mono_ms(), paced=Paced(self._clock) if paced else None)
        timed_out = False
        try:
            async with asyncio.timeout(self._clock.seconds(timeout_ms)):
                await self._exchange(exchange, target.path, fields, body)
        except TimeoutError:
            timed_out = True
        except UpstreamError as error:
            exchange.written = exchange.written and error.written
        if exchange.paced is not None and exchange.head is not None and exchange.head.status < 400:
            wall_ms = (exchange.headed_ms or self._clock.mono_ms()) - exchange.began_ms
            return self._paced_result(target, session_id, exchange, exchange.paced, wall_ms, timed_out=timed_out)
        ended_ms = exchange.headed_ms if exchange.body is not None else None
        wall_ms = (self._clock.mono_ms() if ended_ms is None else ended_ms) - exchange.began_ms
        return self._result(target, session_id, exchange, wall_ms, timed_out=timed_out)

    async def _exchange(self, exchange: _Exchange, path: bytes, fields: list[Field], body: bytes) -> None:
        connection = await self._upstream.acquire()
        try:
            head = request_head(b"POST", path, self._upstream.origin.host_field, fields, chunked=False)
            exchange.began_ms = self._clock.mono_ms()
            connection.send(b"POST", head, (body,))
            exchange.written = True
            exchange.head = await connection.head()
            exchange.headed_ms = self._clock.mono_ms()
            if exchange.paced is not None and exchange.head.status < 400:
                await read_stream(connection, exchange.paced)
            else:
                exchange.body = await _whole(connection)
        finally:
            self._upstream.release(connection)

    def _fields(self, target: ProbeTarget, session_id: str, length: int, *, paced: bool) -> list[Field]:
        fields: list[Field] = [
            (b"user-agent", USER_AGENT),
            (b"accept", b"text/event-stream" if paced else b"application/json"),
            (b"accept-encoding", b"identity"),
            (b"content-type", b"application/json"),
            *target.credential,
            (self._session_header, session_id.encode("latin-1")),
            (b"content-length", b"%d" % length),
        ]
        if target.api == "messages":
            fields.append((b"anthropic-version", b"2023-06-01"))
        return fields

    def _result(
        self, target: ProbeTarget, session_id: str, exchange: _Exchange, wall_ms: float, *, timed_out: bool
    ) -> ProbeResult:
        head, body = exchange.head, exchange.body
        host = self._upstream.origin.host_field
        if head is None or body is None or _is_page(head, body, host):
            facts = ProbeFacts(target.model, None, wall_ms, timed_out=timed_out)
            kind = classify(facts, self._settings)
            return ProbeResult(session_id, kind, None, wall_ms, exchange.written)
        now = self._clock.wall_ms()
        said = signals.read(head.fields, now)
        answer = _document(body)
        refusal = self._refusal(head, body, now)
        facts = ProbeFacts(
            target.model,
            _status(head.status, refusal, answer),
            wall_ms,
            said.upstream_ms,
            _body_id(answer),
            limited=refusal is not None and refusal.kind is RefusalKind.LIMIT,
            overloaded=refusal is not None and refusal.kind is RefusalKind.OVERLOAD,
        )
        return ProbeResult(
            session_id,
            classify(facts, self._settings),
            said.upstream_ms,
            wall_ms,
            exchange.written,
            head.status,
            said.retry_after_ms,
            said.endpoint,
            facts.body_id,
            _tokens(answer),
            completion_tokens=tokens(_usage(answer)).get("output"),
        )

    def paces(self, target: ProbeTarget) -> bool:
        """Is this model's speed what counts, and does its API stream what can be counted?"""
        return target.api == "completions" and self._settings.profile_for(target.model) == "throughput"

    def _paced_result(
        self,
        target: ProbeTarget,
        session_id: str,
        exchange: _Exchange,
        paced: Paced,
        wall_ms: float,
        *,
        timed_out: bool,
    ) -> ProbeResult:
        head, began_ms = exchange.head, exchange.began_ms
        assert head is not None
        paced.tap.close()
        used = tokens(paced.tap.usage)
        tps, estimated = paced.pace.tps(used.get("output"))
        said = signals.read(head.fields, self._clock.wall_ms())
        refusal = None
        if paced.tap.error is not None:
            refusal = refusals.in_stream_error(paced.tap.error, self._settings.upstream.session_header)
        over = paced.ended_ms is not None and not timed_out
        answer = ProbeFacts(
            target.model,
            (_status(head.status, refusal, {}) if over else None),
            wall_ms,
            said.upstream_ms,
            paced.body_id,
            timed_out=timed_out,
            limited=refusal is not None and refusal.kind is RefusalKind.LIMIT,
            overloaded=refusal is not None and refusal.kind is RefusalKind.OVERLOAD,
        )
        first_ms = paced.pace.first_ms
        facts = PacedFacts(
            answer,
            ttfb_ms=None if first_ms is None else first_ms - began_ms,
            total_ms=None if paced.ended_ms is None else paced.ended_ms - began_ms,
            tps=tps,
        )
        graded = grade(facts, self._settings.probe_for(target.model))
        return ProbeResult(
            session_id,
            graded.kind,
            said.upstream_ms,
            wall_ms,
            exchange.written,
            head.status,
            said.retry_after_ms,
            said.endpoint,
            paced.body_id,
            _tokens({"usage": paced.tap.usage}),
            reason=graded.reason,
            ttfb_ms=facts.ttfb_ms,
            total_ms=facts.total_ms,
            tps=tps,
            estimated=estimated,
            completion_tokens=used.get("output", paced.pace.deltas),
        )

    def _refusal(self, head: ResponseHead, body: bytes, now: int) -> Refusal | None:
        header = self._settings.upstream.session_header
        if head.status >= 400:
            return refusals.read(head.status, head.fields, body, now, header)
        return refusals.in_stream_error(body, header)


def probe_body(api: str, model: str, max_tokens: int) -> bytes:
    """The request body of a probe: one short question, no stream."""
    if api == "responses":
        return orjson.dumps({"model": model, "input": PROMPT, "max_output_tokens": max_tokens, "stream": False})
    messages = [{"role": "user", "content": PROMPT}]
    return orjson.dumps({"model": model, "messages": messages, "max_tokens": max_tokens, "stream": False})


async def _whole(connection: Connection) -> bytes | None:
    """The answer's body; None when it broke off or was no answer to a probe."""
    body = await connection.read_all(_ANSWER_BYTES)
    return body if connection.ended is End.COMPLETE else None


def _is_page(head: ResponseHead, body: bytes, host: bytes) -> bool:
    """A log-in page in the gateway's place says nothing about an id."""
    return portal.suspected(head.status, head.fields, host) and portal.is_page(head.status, body)


def _status(status: int, refusal: Refusal | None, answer: dict[str, Any] | None) -> int:
    """The status a probe is judged by: an error inside a 200, or a page where JSON should be, is no success."""
    if not 200 <= status < 300:
        return status
    if refusal is not None:
        return 502 if refusal.kind is RefusalKind.UPSTREAM else 400
    return status if answer is not None else 502


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return answer if isinstance(answer, dict) else None


def _body_id(answer: dict[str, Any] | None) -> str | None:
    found = (answer or {}).get("id")
    return found[:128] if isinstance(found, str) else None


def _usage(answer: dict[str, Any] | None) -> dict[str, Any] | None:
    found = (answer or {}).get("usage")
    return found if isinstance(found, dict) else None


def _tokens(answer: dict[str, Any] | None) -> int:
    """Tokens that the probe was billed for, read and written."""
    usage = _usage(answer)
    if usage is None:
        return 0
    total = usage.get("total_tokens")
    if isinstance(total, int):
        return max(0, total)
    names = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
    return sum(max(0, usage[name]) for name in names if isinstance(usage.get(name), int))
