"""The gateway without its sockets: a request goes in, the exact bytes of the reply and their times come out."""

import uuid
from dataclasses import dataclass, replace
from typing import Any, Final

from proxy.simulator import answers, checks, formats, reading, refusals, timing, told
from proxy.simulator.answers import Answer
from proxy.simulator.draw import Draw
from proxy.simulator.faults import Behaviour, Fault, Script
from proxy.simulator.knobs import Knobs
from proxy.simulator.models import COMPLETIONS, resolve
from proxy.simulator.paths import Route
from proxy.simulator.paths import resolve as route_of
from proxy.simulator.record import Record, digest
from proxy.simulator.refusals import Refusal
from proxy.simulator.world import Ask, Plan, World

READ_MS: Final = 25.0  # what a list or a refusal takes beyond the gateway's own share


@dataclass(slots=True)
class Served:
    """A decision: what to send, and what to remember once it is being sent."""

    script: Script
    ask: Ask | None = None
    plan: Plan | None = None


@dataclass(slots=True)
class Service:
    """Decides every request. A `Record` is filled with what was read and decided."""

    world: World
    knobs: Knobs

    @property
    def legacy(self) -> bool:
        """Whether the account is served the older way."""
        return (self.knobs.mode or self.world.scenario.mode) == "legacy"

    def read(self, record: Record, body: bytes) -> checks.Asked | None:
        """What the request says, written into its record; None for a path that is none."""
        record.body_bytes = len(body)
        record.session_fields = reading.sessions(record.fields)
        route = route_of(record.path.partition("?")[0])
        if route is None:
            return None
        encoding = reading.value(record.fields, "content-encoding")
        facts = reading.Facts(None) if route.reads else reading.facts(body, encoding, route)
        key = reading.credential(record.fields, route)
        session = reading.session(record.fields, self.knobs.session_fields)
        record.provider, record.api, record.session = route.provider, route.api, session
        record.model, record.stream, record.max_tokens = facts.model, facts.stream, facts.max_tokens
        record.key_digest = digest(key) if key else None
        record.probe = facts.max_tokens in {1, 96} and record.user_agent.startswith("ocpool/")
        return checks.Asked(route, record.fields, facts, key, session)

    def serve(
        self,
        record: Record,
        asked: checks.Asked | None,
        behaviour: Behaviour,
        now_ms: float,
        *,
        http10: bool = False,
    ) -> Served:
        """Decide one request that was read."""
        record.log_id = _uuid(record)
        if behaviour.script is not None:
            return Served(behaviour.script)
        close = (reading.value(record.fields, "connection") or "").lower() == "close"
        refusal = self._refusal(record, asked) or behaviour.refusal
        if refusal is not None or asked is None:
            answer = self._refused(record, refusal or refusals.not_found(record.path), None, now_ms)
            return Served(answers.script(answer, http10=http10, close=close))
        if record.method == "OPTIONS" or asked.route.reads:
            answer = self._told(record, asked.route, now_ms)
            return Served(answers.script(answer, http10=http10, close=close))
        ask = _ask(asked)
        plan = _amended(self.world.plan(ask, now_ms), behaviour, ask)
        answer = self._answer(record, asked, plan, behaviour, now_ms)
        whole = answers.script(answer, http10=http10, close=close)
        return Served(answers.broken(whole, plan.fault), ask, plan)

    def _refusal(self, record: Record, asked: checks.Asked | None) -> Refusal | None:
        edge = checks.edge(record.fields, self.knobs)
        if edge is not None or asked is None:
            return edge
        reads = asked.route.reads
        if record.method == "OPTIONS" and not reads:
            return None
        if record.method != ("GET" if reads else "POST"):
            return refusals.not_found(record.path)
        if reads:
            return checks.authorised(asked, self.knobs) if asked.route.api == "usage" else None
        return checks.refusal_of(asked, self.knobs, legacy=self.legacy)

    def _answer(self, record: Record, asked: checks.Asked, plan: Plan, behaviour: Behaviour, now_ms: float) -> Answer:
        record.endpoint = plan.endpoint.name if plan.endpoint else None
        record.bad, record.upstream_ms = plan.bad, plan.upstream_ms
        record.fault = plan.fault.value if plan.fault else None
        if plan.fault is Fault.SILENT_524:
            late = self._refused(record, refusals.timed_out(), None, now_ms)
            return replace(late, head_ms=self.knobs.silence_ms)
        if plan.refusal is not None:
            return self._refused(record, plan.refusal, plan, now_ms)
        record.status = 200
        record.prompt_tokens, record.cached_tokens = plan.prompt_tokens, plan.cached_tokens
        record.completion_tokens = plan.completion_tokens
        answer = self._body(asked, plan, behaviour, int(now_ms / 1000))
        media = refusals.JSON if answer.sized else answers.EVENT_STREAM
        answer.fields = [("content-type", media), ("cache-control", "no-cache")]
        answer.fields += timing.cloudflare(plan.draw, int(now_ms))
        if not self.legacy:
            variant = behaviour.timing or timing.usual(plan.draw)
            answer.fields += timing.service(record.log_id)
            answer.fields += timing.served_by(plan, resolve(record.model or ""))
            answer.fields += timing.server_timing(plan, variant)
        answer.fields += behaviour.fields
        return answers.spoil(answer, plan.fault, plan.style, self.knobs.stall_ms)

    def _body(self, asked: checks.Asked, plan: Plan, behaviour: Behaviour, created: int) -> Answer:
        """The reply in the format of its path."""
        api, model, tools = asked.route.api, resolve(asked.facts.model or ""), asked.facts.tools
        head_ms = plan.gateway_ms + plan.upstream_ms
        if not (asked.facts.stream and api in formats.STREAMED):
            whole = formats.whole(api, plan, model, tools, created)
            return Answer(200, [], answers.as_json(whole | ({"cost": "0"} if self.legacy else {})), head_ms)
        style = plan.style
        if self.legacy and api == COMPLETIONS:
            style = replace(style, done="cost")
            plan = replace(plan, style=style)
        events = list(formats.events(api, plan, model, tools, created))
        if self.legacy and api != COMPLETIONS:
            events.append((events[-1][0], formats.cost_event(api)))
        pieces = answers.encoded(events, style, behaviour.thinking_ms or 0.0, self.knobs.keepalive_ms)
        return Answer(200, [], pieces, head_ms, sized=False, split=plan.draw if style.split else None)

    def _refused(self, record: Record, refusal: Refusal, plan: Plan | None, now_ms: float) -> Answer:
        record.status, record.error = refusal.status, refusal.name
        draw = Draw.about(record.path, record.at)
        service = "Console Go" if record.provider == "opencode-go" else "Console"
        prefix = f"Error from provider ({service}): " if self.legacy else ""
        fields = [("content-type", refusal.content_type), *timing.cloudflare(draw, int(now_ms))]
        if refusal.by != "edge" and not self.legacy:
            fields += timing.service(record.log_id)
            if plan is not None and plan.endpoint is not None:
                fields += timing.server_timing(plan, "plain")
        if refusal.retry_after_s is not None:
            fields.append(("retry-after", str(refusal.retry_after_s)))
        fields += refusal.fields
        gateway_ms = plan.gateway_ms if plan else draw.scaled("gateway", 8, 50)
        head_ms = gateway_ms + (refusal.took_ms or 0.0)
        return Answer(refusal.status, fields, [(0.0, refusal.body(prefix))], head_ms)

    def _told(self, record: Record, route: Route, now_ms: float) -> Answer:
        record.status = 200
        edge = timing.cloudflare(Draw.about(record.path, record.at), int(now_ms))
        if record.method == "OPTIONS":
            return Answer(200, [*told.CORS, *edge], [], READ_MS)
        fields = [("content-type", refusals.JSON), *edge]
        fields += [] if self.legacy else timing.service(record.log_id)
        if route.api == "models":
            fields += [("cache-control", "no-store"), told.ANY_ORIGIN]
            body = told.models(route.provider, int(now_ms / 1000))
        else:
            body = told.usage(self.world.limits_left_ms(now_ms), now_ms)
        return Answer(200, fields, answers.as_json(body), READ_MS)


def _ask(asked: checks.Asked) -> Ask:
    facts = asked.facts
    return Ask(
        session=asked.session or f"key:{digest(asked.key or '')}",
        model=resolve(facts.model or ""),
        prompt=facts.prompt,
        provider=asked.route.provider,
        stream=facts.stream and asked.route.api in formats.STREAMED,
        max_tokens=facts.max_tokens,
        tools=facts.tools,
        lacks_reasoning=facts.lacks_reasoning,
    )


def _amended(plan: Plan, behaviour: Behaviour, ask: Ask) -> Plan:
    """The plan with what a behaviour wants otherwise."""
    if plan.refusal is not None:
        return plan
    call = None if behaviour.tool_calls is None else behaviour.tool_calls and bool(ask.tools)
    wanted: dict[str, Any] = {
        "gateway_ms": behaviour.gateway_ms,
        "upstream_ms": behaviour.upstream_ms,
        "first_token_ms": behaviour.first_token_ms,
        "tokens_per_s": behaviour.tokens_per_s,
        "completion_tokens": behaviour.tokens,
        "tool_call": call,
        "style": behaviour.style,
        "fault": behaviour.fault,
    }
    changed = replace(plan, **{name: value for name, value in wanted.items() if value is not None})
    rest = plan.total_ms - plan.gateway_ms - plan.upstream_ms
    return replace(changed, total_ms=changed.gateway_ms + changed.upstream_ms + rest)


def _uuid(record: Record) -> str:
    return str(uuid.UUID(Draw.about(record.number, record.at, record.path).hex("log", 32), version=4))
