"""The latency profile: a 1-token probe, and what counts as fast.

The gateway says how long the model took in ``server-timing`` (``upstream;dur``); where that is absent, the
wall clock to the response head stands in for it.
"""

from collections.abc import Callable
from typing import NamedTuple

from config.sections.probe import ProbeSection
from config.settings import Settings
from pool.model import ProbeKind

PROMPT = "OK"
OWN_WORKER = "gw-"  # how response ids of the fast workers began until 2026-11-11


class ProbeFacts(NamedTuple):
    """What was seen of one probe; HTTP has been read out of it already.

    ``status`` None means that no complete answer came: ``timed_out``, or else the connection failed.
    """

    model: str
    status: int | None
    wall_ms: float  # to the response head, or until it was given up
    upstream_ms: float | None = None
    body_id: str | None = None
    timed_out: bool = False
    limited: bool = False  # the account's or the key's limit, whatever the status
    overloaded: bool = False  # this route's, or the gateway's


def latency_of(facts: ProbeFacts) -> float:
    """The latency a probe is judged by, in ms."""
    return facts.wall_ms if facts.upstream_ms is None else facts.upstream_ms


class Row(NamedTuple):
    """What a probe found when ``fits``."""

    kind: ProbeKind
    fits: Callable[[ProbeFacts, ProbeSection], bool]


TABLE: tuple[Row, ...] = (
    Row(ProbeKind.TIMEOUT, lambda facts, _: facts.status is None and facts.timed_out),
    Row(ProbeKind.TRANSPORT, lambda facts, _: facts.status is None),
    Row(ProbeKind.LIMIT, lambda facts, _: facts.limited or facts.status == 402),
    Row(ProbeKind.UNAUTHORIZED, lambda facts, _: facts.status in {401, 403}),
    Row(ProbeKind.OVERLOADED, lambda facts, _: facts.overloaded or facts.status in {429, 529}),
    Row(ProbeKind.TRANSPORT, lambda facts, _: (facts.status or 0) >= 500),
    Row(ProbeKind.REJECTED, lambda facts, _: not 200 <= (facts.status or 0) < 300),
    # From here on there is an answer, and the question is how good it was.
    Row(ProbeKind.SLOW, lambda facts, probe: latency_of(facts) > probe.max_upstream_ms),
    Row(
        ProbeKind.MISMATCH,
        lambda facts, probe: probe.require_gateway_id and not (facts.body_id or "").startswith(OWN_WORKER),
    ),
    Row(ProbeKind.FAST, lambda _facts, _probe: True),
)


UNANSWERED = next(number for number, row in enumerate(TABLE) if row.kind is ProbeKind.SLOW)


def answered(facts: ProbeFacts, probe: ProbeSection) -> ProbeKind | None:
    """None: there is an answer that can be measured; else what stood in the way."""
    return next((row.kind for row in TABLE[:UNANSWERED] if row.fits(facts, probe)), None)


def classify(facts: ProbeFacts, settings: Settings) -> ProbeKind:
    """What a probe found: the first row that fits."""
    probe = settings.probe_for(facts.model)
    return next(row.kind for row in TABLE if row.fits(facts, probe))
