"""What happens to a request: decided synchronously, in simulated time, without a socket.

The world is a function of seed, session, model and time. Its one memory is what was in a prompt cache, which belongs to
a session: no request changes what another session meets.
"""

from dataclasses import dataclass, field, replace

from proxy.simulator.draw import Draw
from proxy.simulator.endpoints import BodyIds, Endpoint
from proxy.simulator.faults import Fault
from proxy.simulator.limits import LIMITS, Window
from proxy.simulator.prompts import Prompt, PromptCaches
from proxy.simulator.refusals import Refusal, invalid_request, overloaded
from proxy.simulator.scenarios import Phase, Scenario, scenario_named
from proxy.simulator.styles import PLAIN, Style

TICK_MS = 250.0  # draws that change with time change this often


@dataclass(frozen=True, slots=True)
class Ask:
    """What the world needs to know of a request.

    Attributes:
        session: What it is routed by: a session's id, or where none is needed something of the key's.
        lacks_reasoning: It repeats a tool call without its thinking.
    """

    session: str
    model: str
    prompt: Prompt
    provider: str = "opencode-go"
    stream: bool = True
    max_tokens: int | None = None
    tools: tuple[str, ...] = ()
    lacks_reasoning: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to happen. ``upstream_ms`` holds prefill, and for a JSON reply the whole generation.

    ``first_token_ms`` counts from the head. With a refusal, ``endpoint`` is who refused, or None.
    """

    draw: Draw
    endpoint: Endpoint | None
    gateway_ms: float
    upstream_ms: float
    total_ms: float
    first_token_ms: float = 0.0
    tokens_per_s: float = 100.0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    body_id: str = ""
    tool_call: bool = False
    style: Style = PLAIN
    fault: Fault | None = None
    refusal: Refusal | None = None

    @property
    def bad(self) -> bool:
        """Whether the endpoint is one to stay away from."""
        return self.endpoint is not None and self.endpoint.bad

    @property
    def ttft_ms(self) -> float:
        """From arrival to the first token."""
        return self.gateway_ms + self.upstream_ms + self.first_token_ms


@dataclass(slots=True)
class World:
    """One gateway's world. Instants are any milliseconds, counted from ``epoch_ms``."""

    scenario: Scenario
    seed: int = 1
    epoch_ms: float = 0.0
    windows: list[Window] = field(default_factory=list)  # opened by hand, beside the scenario's
    _caches: PromptCaches = field(default_factory=PromptCaches)

    @classmethod
    def of(cls, scenario: str | Scenario, seed: int = 1, epoch_ms: float = 0.0) -> "World":
        """The world of a scenario or of its name; raises ValueError for an unknown one."""
        known = scenario if isinstance(scenario, Scenario) else scenario_named(scenario)
        return cls(known, seed, epoch_ms)

    def plan(self, ask: Ask, now_ms: float) -> Plan:
        """What happens to a request that arrives now; changes nothing."""
        at_ms = now_ms - self.epoch_ms
        lasting = Draw.about(self.seed, ask.provider, ask.model, ask.session)
        moment = Draw.about(self.seed, ask.provider, ask.model, ask.session, int(at_ms // TICK_MS))
        refusal = self._window(ask, None, at_ms)
        if refusal is not None:
            return _refused(moment, None, refusal)
        phase = self.scenario.phase(at_ms)
        endpoint = _endpoint(phase, lasting, moment)
        refusal = self._window(ask, endpoint, at_ms) or _own_refusal(endpoint, ask, moment)
        if refusal is not None:
            return _refused(moment, endpoint, refusal)
        return self._served(ask, endpoint, lasting, moment, now_ms)

    def served(self, ask: Ask, plan: Plan, now_ms: float) -> None:
        """The prompt of a planned request was read: from now on the endpoint has it in its cache."""
        if plan.endpoint is not None and plan.refusal is None:
            self._caches.store(_cache_key(plan.endpoint, ask), ask.prompt, now_ms)

    def limits_left_ms(self, now_ms: float) -> dict[str, float]:
        """The account's limits that are reached now, by their name, and how long each holds."""
        at_ms = now_ms - self.epoch_ms
        found = {}
        for window in (*self.scenario.windows, *self.windows):
            metadata = LIMITS[window.name].metadata or {}
            if "limitName" in metadata and window.left_ms(at_ms) > 0:
                found[metadata["limitName"]] = window.left_ms(at_ms)
        return found

    def _window(self, ask: Ask, endpoint: Endpoint | None, at_ms: float) -> Refusal | None:
        name = endpoint.name if endpoint else None
        for window in (*self.scenario.windows, *self.windows):
            refusal = window.refusal(ask.provider, ask.model, name, at_ms)
            if refusal is not None:
                return refusal
        return None

    def _served(self, ask: Ask, endpoint: Endpoint, lasting: Draw, moment: Draw, now_ms: float) -> Plan:
        cached = self._caches.cached_tokens(_cache_key(endpoint, ask), ask.prompt, now_ms)
        prompt_tokens = max(1, round(ask.prompt.tokens * endpoint.tokenizer))
        cached = min(cached, prompt_tokens)
        tokens = int(moment.scaled("tokens", 40, 600))
        if ask.max_tokens is not None:
            tokens = max(1, min(tokens, ask.max_tokens))
        speed = endpoint.tokens_per_s * moment.between("speed", 0.85, 1.15)
        shards = Draw.about(lasting.subject, endpoint.name)
        plan = Plan(
            draw=moment,
            endpoint=endpoint,
            gateway_ms=float(round(moment.scaled("gateway", 8, 50))),
            upstream_ms=endpoint.latency.of(shards, moment) + (prompt_tokens - cached) / endpoint.prefill_tps * 1000,
            total_ms=0.0,
            first_token_ms=moment.between("first token", 15, 90),
            tokens_per_s=speed,
            prompt_tokens=prompt_tokens,
            cached_tokens=cached,
            completion_tokens=tokens,
            body_id=_body_id(endpoint, moment),
            tool_call=bool(ask.tools) and moment.fraction("tool") < 0.5,
            style=endpoint.style,
            fault=_fault(self.scenario, moment),
        )
        return settled(plan, ask)


def settled(plan: Plan, ask: Ask) -> Plan:
    """The plan with whole milliseconds that add up; a JSON reply has its whole generation before its head."""
    upstream, first = plan.upstream_ms, plan.first_token_ms
    if not ask.stream:
        upstream += first + plan.completion_tokens / plan.tokens_per_s * 1000
        first = 0.0
    total = plan.gateway_ms + round(upstream) + round(plan.draw.between("rest", 1, 40))
    return replace(plan, upstream_ms=float(round(upstream)), first_token_ms=first, total_ms=total)


def _endpoint(phase: Phase, lasting: Draw, moment: Draw) -> Endpoint:
    hops = phase.sticky and moment.fraction("hop") < phase.hop
    draw = lasting if phase.sticky and not hops else moment
    return draw.pick("endpoint", phase.endpoints)


def _cache_key(endpoint: Endpoint, ask: Ask) -> tuple[str, str, str]:
    return endpoint.cache or endpoint.name, ask.session, ask.model


def _own_refusal(endpoint: Endpoint, ask: Ask, moment: Draw) -> Refusal | None:
    if moment.fraction("overload") < endpoint.refuses:
        status = moment.one_of("overload status", endpoint.refusal_statuses)
        told = 2 if moment.fraction("overload told") < 0.3 else None
        return overloaded(status, round(moment.between("overload took", 90, 400)), told)
    if endpoint.wants_reasoning and ask.lacks_reasoning:
        return invalid_request("reasoning_content is required in assistant messages with tool_calls")
    return None


def _refused(moment: Draw, endpoint: Endpoint | None, refusal: Refusal) -> Plan:
    gateway = float(round(moment.scaled("gateway", 8, 50)))
    took = refusal.took_ms or 0.0
    return Plan(moment, endpoint, gateway, took, gateway + took + 2, refusal=refusal)


def _body_id(endpoint: Endpoint, moment: Draw) -> str:
    form: BodyIds = moment.one_of("body id", endpoint.body_ids)
    unique = moment.hex("body id value", 32)
    if form == "worker":
        return f"gw-{unique[:4]}-{int(unique[4:10], 16)}"
    return f"chatcmpl-{unique}" if form == "chatcmpl" else unique


def _fault(scenario: Scenario, moment: Draw) -> Fault | None:
    if moment.fraction("fault") >= scenario.faulty:
        return None
    return moment.one_of("which fault", tuple(Fault))
