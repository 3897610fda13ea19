"""The nouns of the pool. Instants are unix milliseconds (``_at``), durations milliseconds (``_ms``)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Shape(StrEnum):
    """How an id is spelled; chosen when it is probed, because a client may expect its own kind."""

    UUID = "uuid"
    SES = "ses"  # OpenCode's: ses_, 12 lowercase hex, 14 base62


class Source(StrEnum):
    """Where the id of a request came from; the value of ``x-ocpool-route``."""

    SPARE = "spare"
    NATURAL = "natural"
    PROBE = "probe"
    REPIN = "repin"
    NONE = "none"


class ModelKey(NamedTuple):
    """A route is judged for one provider and model; an id fast for one model says nothing about another."""

    provider: str
    model: str


class Stock(NamedTuple):
    """Spares of one stock may stand in for each other. ``scope`` is "" when any caller may use them."""

    provider: str
    model: str
    scope: str
    shape: Shape


class Spare(NamedTuple):
    """A verified id that nobody owns yet."""

    id: str
    stock: Stock
    upstream_ms: float
    verified_at: int
    created_at: int
    tps: float | None = None  # what its probe wrote, in the throughput profile


class Natural(NamedTuple):
    """The id a conversation would use without us: the client's own value, or a minted one.

    ``digest`` is what may be written to disk in place of a client's value; a minted one needs none.
    """

    value: str
    minted: bool
    digest: str = ""


@dataclass(slots=True)
class Wish:
    """What a request asks of the pool.

    ``conversation`` is an opaque label, 16 hex. ``turn`` is False for a side call or a request that is not
    recognised, or names no model: it takes nothing. ``child``: a sub-agent's conversation, another one started it.
    ``key`` is its binding's, ``judged`` what its route is judged for. It never changes, so one will do for all
    requests of a conversation that are alike in it.
    """

    conversation: str
    scope: str
    provider: str
    model: str
    shape: Shape
    natural: Natural
    turn: bool = True
    child: bool = False
    key: str = field(init=False)
    judged: ModelKey = field(init=False)

    def __post_init__(self) -> None:
        provider, model = self.provider, self.model
        self.key = binding_key(self.conversation, provider, model)
        self.judged = ModelKey(provider, model)
        if not model:
            self.turn = False


@dataclass(slots=True)
class Start:
    """The id a request goes out on, and what must be remembered to judge it afterwards."""

    wish: Wish
    routed_id: str
    source: Source
    at: int
    bound: bool  # a binding existed or was made; False: nothing to judge but the natural id
    first_turn: bool
    budget_ms: float = 0.0  # how long the caller may still look for a fast id before it sends; 0: go
    replaced: bool = False  # refused, and another attempt is under way: that one's outcome settles both
    replaces: str | None = None  # the refused id that this attempt stands in for


class Blame(StrEnum):
    """Whose fault it was."""

    NONE = "none"
    CLIENT = "client"
    ROUTE = "route"
    LIMIT = "limit"
    UPSTREAM = "upstream"
    OURSELVES = "ourselves"


class Latency(StrEnum):
    """What a latency was measured by."""

    UPSTREAM = "upstream"  # server-timing's upstream;dur
    FIRST_EVENT = "first_event"  # to the first semantic event, where there is no server-timing
    WAITED = "waited"  # the client left first: at least this long


class Outcome(NamedTuple):
    """What an attempt on an id turned out to be; HTTP has been read out of it already."""

    blame: Blame
    accepted: bool  # a 2xx: the credential and the model work
    judged: bool  # may its latency strike or retire (a streamed turn, no suspend in between)
    refused: bool = False  # the route said no: overloaded, 529, a 429 that names no limit
    replayed: bool = False  # this attempt replaced a refused one
    unauthorized: bool = False  # 401 or 403
    latency_ms: float | None = None
    latency: Latency = Latency.UPSTREAM
    uncached_tokens: int | None = None  # input tokens the provider had to read; None: unknown
    request_bytes: int = 0
    endpoint: str | None = None
    first_event_ms: float | None = None  # to the first semantic event, from sending
    generation_ms: float | None = None  # from the first to the last semantic event
    tps: float | None = None  # tokens a second over that; None: not measured (latency profile), or too little to tell
    estimated: bool = False  # without usage: the events were counted
    completion_tokens: int | None = None
    input_tokens: int | None = None
    pause_ms: float | None = None  # how long a limit or Retry-After asks probes to stay away


class ProbeKind(StrEnum):
    """What a probe found."""

    FAST = "fast"
    SLOW = "slow"
    TIMEOUT = "timeout"
    MISMATCH = "gateway-id-mismatch"  # fast, but rejected by probe.require_gateway_id
    OVERLOADED = "overloaded"
    LIMIT = "limit"
    UNAUTHORIZED = "unauthorized"
    REJECTED = "rejected"
    TRANSPORT = "transport"


class ProbeResult(NamedTuple):
    """One probe, classified. ``written`` is False when its request never left: it counts against no cap."""

    id: str
    kind: ProbeKind
    upstream_ms: float | None
    wall_ms: float
    written: bool
    status: int | None = None
    retry_after_ms: float | None = None
    endpoint: str | None = None
    body_id: str | None = None
    tokens: int = 0  # read and written, of which ``completion_tokens`` were written
    reason: str | None = None  # why it was rejected, in the throughput profile; its measurements follow
    ttfb_ms: float | None = None
    total_ms: float | None = None
    tps: float | None = None
    estimated: bool = False
    completion_tokens: int | None = None


@dataclass(slots=True)
class Binding:
    """Which id a conversation owns for one provider and model."""

    key: str  # "<conversation>::<provider>::<model>"
    provider: str
    model: str
    routed_id: str
    source: Source
    bound_at: int
    last_seen_at: int
    upstream_ms: float | None = None
    verified_at: int | None = None
    failures: int = 0
    turns: int = 0
    endpoint: str | None = None
    scope: str = ""
    marked: bool = False  # a slow natural id: used until a spare is ready
    standby: str | None = None  # an id already spent on this conversation by a failed failover
    tps: float | None = None  # what its probe wrote (throughput profile)
    corrected: bool = False  # the one correction of its probe's speed was made
    locked: bool = False  # slow turns do not move it any more
    # In memory only:
    value: str | None = None  # what its requests go out on; None: a client's value that has not come back yet
    told_at: int = 0  # when the store was to be told of it last


@dataclass(slots=True)
class Note:
    """A decision of the pool, for the event log: a name and plain facts. Ids only as digests."""

    name: str  # take, natural, repin, strike, retire, mark, refill, probe, pause, adopt, prune ...
    facts: dict[str, object] = field(default_factory=dict)


def binding_key(conversation: str, provider: str, model: str) -> str:
    """The key of a binding, as pi-opencode-session-pool spells it."""
    return f"{conversation}::{provider}::{model}"
