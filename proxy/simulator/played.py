"""Conversations played against a world in virtual time, with a policy that chooses the ids they go out on.

Clients behave as they do on the wire: one turn after the other, each retried as that client retries. A wait for a
probe, and for attempts that fail, is part of the wait for the first byte.
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from proxy.simulator.clients import Refused
from proxy.simulator.faults import Fault
from proxy.simulator.knobs import Knobs
from proxy.simulator.policies import Answer, Asked, Policy, Probe
from proxy.simulator.prompts import Prompt, prompt_of
from proxy.simulator.refusals import timed_out
from proxy.simulator.timeline import Routine, Timeline
from proxy.simulator.traces import Conversation
from proxy.simulator.world import Ask, Plan, World

TICK_MS: Final = 1_000.0  # how often a policy is asked whether it wants to probe
APART_MS: Final = 750.0  # from one probe's end to the next
IDLE_MS: Final = 300_000.0  # a client gives a silent answer up
BODY_BYTES_PER_TOKEN: Final = 4
_PROBED: Final = prompt_of(b"OK")


@dataclass(slots=True)
class Turned:
    """One turn as its client saw it.

    Attributes:
        at_ms: When it was first sent, since the beginning.
        ttfb_ms: From then to the first byte of the answer that served it, probes and retries included.
        served: It was answered, and to the end.
        bad: The endpoint that served it is one to stay away from.
        attempts: How many requests its client sent; ``sent`` counts those that left for the gateway.
        moved: It went out on another id than the turn before.
        tokens_per_s: Of the answer, from its first token to its last; None where there were fewer than two.
    """

    number: int
    turn: int
    at_ms: float
    ttfb_ms: float = 0.0
    served: bool = False
    bad: bool = False
    attempts: int = 0
    sent: int = 0
    moved: bool = False
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    tokens_per_s: float | None = None
    session: str = ""
    kept_natural: bool = True


@dataclass(slots=True)
class Probed:
    """One probe: when it was sent, what it cost, and whether a turn waited for it."""

    at_ms: float
    tokens: int
    waited_for: bool


@dataclass(slots=True)
class Play:
    """One play of some conversations: ``turns`` and ``probes`` grow in the order of their ends."""

    world: World
    policy: Policy
    turns: list[Turned] = field(default_factory=list)
    probes: list[Probed] = field(default_factory=list)
    knobs: Knobs = field(default_factory=Knobs)
    _time: Timeline = field(default_factory=Timeline)
    _last: dict[str, str] = field(default_factory=dict)

    def run(self, conversations: Iterable[Conversation]) -> None:
        """Play them all, each from its own start."""
        began = self._time.now = self.world.epoch_ms
        starts = [(began + one.start_ms, self._converse(one)) for one in conversations]
        self._time.run(starts, [self._background()])

    def _converse(self, conversation: Conversation) -> Routine:
        served = True
        for number in range(len(conversation.turns)):
            if number:
                yield conversation.waits_ms(number) if served else conversation.turns[number].pause_ms
            prompt = conversation.prompt(number)
            size = prompt.tokens * BODY_BYTES_PER_TOKEN
            asked = Asked(conversation.session, number, conversation.model, prompt.tokens, size)
            turned = Turned(conversation.number, number, self._time.now - self.world.epoch_ms)
            yield from self._turn(conversation, asked, prompt, turned)
            self.turns.append(turned)
            served = turned.served  # after a failure a person has to come back

    def _turn(self, conversation: Conversation, asked: Asked, prompt: Prompt, turned: Turned) -> Routine:
        began = self._time.now
        while True:
            while (probe := self.policy.before(asked, self._time.now)) is not None:
                yield from self._probe(probe, waited_for=True)
            session = self.policy.session(asked, self._time.now)
            turned.attempts += 1
            answer = yield from self._attempts(asked, prompt, session, turned)
            if answer.status == 200 and answer.complete and answer.first_ms is not None:
                _serve(turned, answer, self._time.now - answer.took_ms + answer.first_ms - began)
                return
            wait_ms = conversation.client.wait_ms(turned.attempts, _refused(answer))
            if wait_ms is None:
                turned.ttfb_ms = self._time.now - began
                return
            yield wait_ms

    def _attempts(self, asked: Asked, prompt: Prompt, session: str, turned: Turned) -> Generator[float, None, Answer]:
        """One request of the client; the policy may send it again unseen."""
        while True:
            self._note_id(asked, session, turned)
            ask = Ask(session, asked.model, prompt, tools=("read",))
            plan = self.world.plan(ask, self._time.now)
            answer = self._answer(plan)
            waited = answer.took_ms if answer.head_ms is None else answer.head_ms
            yield waited
            if plan.refusal is not None:
                other = self.policy.again(asked, session, answer, self._time.now)
                if other is not None:
                    session = other
                    continue
            self.policy.headed(asked, session, answer, self._time.now)
            if answer.first_ms is not None:
                yield answer.first_ms - waited
                waited = answer.first_ms
                self.world.served(ask, plan, self._time.now)
            yield answer.took_ms - waited
            self.policy.ended(asked, session, answer, self._time.now)
            return answer

    def _note_id(self, asked: Asked, session: str, turned: Turned) -> None:
        turned.sent += 1
        turned.moved = turned.moved or self._last.get(asked.session, session) != session
        turned.session, turned.kept_natural = session, session == asked.session
        self._last[asked.session] = session

    def _background(self) -> Routine:
        while True:
            probe = self.policy.probe(self._time.now)
            if probe is None:
                yield TICK_MS
                continue
            yield from self._probe(probe, waited_for=False)
            yield APART_MS

    def _probe(self, probe: Probe, *, waited_for: bool) -> Routine:
        model = self.policy.model
        ask = Ask(probe.session, model, _PROBED, stream=probe.stream, max_tokens=probe.max_tokens)
        plan = self.world.plan(ask, self._time.now)
        answer = self._answer(plan)
        if answer.took_ms > probe.timeout_ms:
            answer = _given_up(answer, probe.timeout_ms)
        spent = answer.plan.prompt_tokens + answer.plan.completion_tokens if answer.status == 200 else 0
        self.probes.append(Probed(self._time.now - self.world.epoch_ms, spent, waited_for))
        yield answer.took_ms
        self.policy.probed(probe, answer, self._time.now)

    def _answer(self, plan: Plan) -> Answer:
        """What a client sees of a plan."""
        legacy = (self.knobs.mode or self.world.scenario.mode) == "legacy"
        head = plan.gateway_ms + plan.upstream_ms
        if plan.refusal is not None:
            status = plan.refusal.status
            return Answer(plan, status, not legacy, head, first_ms=None, last_ms=None, complete=True, took_ms=head)
        first = head + plan.first_token_ms
        last = first + max(0, plan.completion_tokens - 1) / plan.tokens_per_s * 1000
        whole = Answer(plan, 200, not legacy, head, first, last, complete=True, took_ms=last)
        return whole if plan.fault is None else _broken(whole, plan.fault, self.knobs)


def _serve(turned: Turned, answer: Answer, ttfb_ms: float) -> None:
    plan = answer.plan
    turned.served, turned.bad, turned.ttfb_ms = True, plan.bad, ttfb_ms
    turned.prompt_tokens, turned.cached_tokens = plan.prompt_tokens, plan.cached_tokens
    turned.completion_tokens, turned.tokens_per_s = plan.completion_tokens, answer.tokens_per_s


def _refused(answer: Answer) -> Refused:
    refusal = answer.plan.refusal
    if answer.status in {None, 200} or refusal is None:
        return Refused(None)
    return Refused(answer.status, refusal.retry_after_s, f"{refusal.name} {refusal.message}")


def _given_up(answer: Answer, timeout_ms: float) -> Answer:
    """A probe that took too long: what had come by then is of no use."""
    return answer._replace(status=None, head_ms=None, first_ms=None, last_ms=None, complete=False, took_ms=timeout_ms)


def _broken(whole: Answer, fault: Fault, knobs: Knobs) -> Answer:
    """What a client sees of an answer that breaks."""
    head, first, last = whole.head_ms or 0.0, whole.first_ms or 0.0, whole.last_ms or 0.0
    half = (first + last) / 2
    if fault is Fault.STALL:
        return whole._replace(last_ms=last + knobs.stall_ms, took_ms=last + knobs.stall_ms)
    if fault is Fault.SILENT_524:
        plan, at = replace(whole.plan, refusal=timed_out()), knobs.silence_ms
        return Answer(plan, 524, headers=False, head_ms=at, first_ms=None, last_ms=None, complete=True, took_ms=at)
    if fault in {Fault.RESET_BEFORE_HEAD, Fault.CLOSE_BEFORE_HEAD}:
        return _given_up(whole, head)
    if fault in {Fault.SILENT_BODY, Fault.ERROR_200, Fault.EMPTY_200}:
        silent = fault is Fault.SILENT_BODY
        took = head + (IDLE_MS if silent else 0.0)
        return whole._replace(first_ms=None, last_ms=None, complete=not silent, took_ms=took)
    took = half + (IDLE_MS if fault is Fault.HANG else 0.0)
    return whole._replace(last_ms=half, complete=False, took_ms=took)
