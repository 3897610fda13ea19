"""Bodies that begin as one before did: the messages that were read then are not read again.

A client sends the whole conversation with every turn, so a turn's body is the last one's with something put in. What
was read is remembered by a hash of the raw bytes it was read from; a hit costs reading the bytes once, and parsing only
what follows; only the new messages, where what stands behind them all is the same, too. Nothing depends on a hit:
without one the body is parsed whole, with the same result.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from proxy.conversation.transcript import Transcript

if TYPE_CHECKING:
    from proxy.conversation.body import BodyFacts

CHUNK: Final = 16_384
SMALLEST: Final = 2 * CHUNK  # a smaller body is parsed sooner than it is recognised
_GATE = 4096  # bytes that tell most strangers apart, before anything else is read
_KEPT = 512  # prefixes
_KEPT_BYTES = 16 * 1024 * 1024
_MANY = 65_536  # messages; more are not kept
_TRIES = 64
_BLANK: Final = b" \t\r\n"


class Layout(NamedTuple):
    """What a body says beside its messages, which are its list ``name``, and what ``Content`` found out about them."""

    name: str
    facts: "BodyFacts"
    client: int
    counted: int
    opener_key: int
    system_key: int


class Known(NamedTuple):
    """What was read of a body up to ``end``, where its last message ended; ``start`` is where its list began.

    ``rest`` is the hash of the bytes between the last whole chunk and ``end``, ``tail`` that of the ``behind`` bytes
    from there on. ``transcript`` is None where nobody asked what was said.
    """

    layout: Layout
    start: int
    end: int
    rest: int
    behind: int
    tail: int
    transcript: Transcript | None
    chain: int


class Found(NamedTuple):
    """The beginning that a body has in common with one before, and the hashes of its own beginnings, chunk by chunk.

    ``end`` is where its last message ends, 0 where something else stands behind its messages than did before.
    """

    known: Known
    chains: list[int]
    end: int


class Prefixes:
    """The latest bodies' beginnings. Memory: at most 16 MiB, whatever comes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, list[Known]] = OrderedDict()
        self._gates: dict[int, int] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return sum(len(found) for found in self._kept.values())

    def find(self, data: bytes) -> Found | None:
        """The longest remembered beginning of this body."""
        if len(data) < SMALLEST or hash(data[:_GATE]) not in self._gates:
            return None
        chains = _chains(data, len(data), [])
        for count in range(len(chains), 0, -1):
            for known in self._kept.get(chains[count - 1], ()):
                if known.end <= len(data) and hash(data[count * CHUNK : known.end]) == known.rest:
                    self._kept.move_to_end(known.chain)
                    end = len(data) - known.behind
                    same = end >= known.end and data[end - 1 : end] == b"}" and hash(data[end:]) == known.tail
                    return Found(known, chains, end if same else 0)
        return None

    def remember(
        self, data: bytes, keys: list[str], layout: Layout, transcript: Transcript | None, found: Found | None
    ) -> None:
        """Keep what was read of this body, if it is found where its messages begin and end.

        ``found`` is what ``find`` said of it. ``keys`` are all that it has, in their order; not needed where that knew
        its end.
        """
        if len(data) < SMALLEST or (transcript is not None and len(transcript) > _MANY):
            return
        if found is not None and found.end == found.known.end:
            return  # the same once more
        start, end = _where(data, layout.name, keys, found)
        count = end // CHUNK
        if not count:
            return
        chain = _chains(data, end, found.chains if found is not None else [])[count - 1]
        rest = hash(data[count * CHUNK : end])
        known = Known(layout, start, end, rest, len(data) - end, hash(data[end:]), transcript, chain)
        self._keep(hash(data[:_GATE]), known)

    def _keep(self, gate: int, known: Known) -> None:
        old = self._kept.get(known.chain, ())
        same = [other for other in old if (other.end, other.rest) != (known.end, known.rest)]
        self._drop(known.chain)
        self._kept[known.chain] = [known, *same[:3]]
        self._kept[known.chain].sort(key=lambda each: -each.end)
        self._bytes += sum(_size(each) for each in self._kept[known.chain])
        self._gates[gate] = known.chain
        while len(self._kept) > _KEPT or self._bytes > _KEPT_BYTES:
            self._drop(next(iter(self._kept)))
        if len(self._gates) > 2 * _KEPT:
            self._gates = {each: chain for each, chain in self._gates.items() if chain in self._kept}

    def _drop(self, chain: int) -> None:
        self._bytes -= sum(_size(each) for each in self._kept.pop(chain, ()))


def _size(known: Known) -> int:
    transcript = known.transcript
    size = 1024 + 512 * len(known.layout.facts.ids)
    if transcript is not None:
        size += 8 * (len(transcript.points) + len(transcript.marks) + len(transcript.ids))
    return size


def _chains(data: bytes, upto: int, chains: list[int]) -> list[int]:
    """For every whole chunk the hash of everything up to its end; ``chains`` are the first of them.

    A chunk is copied for it, in the processor's cache: a view would hash all of the data once more.
    """
    chain = chains[-1] if chains else 0
    for end in range((len(chains) + 1) * CHUNK, upto + 1, CHUNK):
        chain = hash((chain, hash(data[end - CHUNK : end])))
        chains.append(chain)
    return chains


def _where(data: bytes, name: str, keys: list[str], found: Found | None) -> tuple[int, int]:
    """Where the list of messages begins, and where its last one ends; 0 for an end that is not found."""
    if found is not None and found.end:
        return found.known.start, found.end
    at = keys.index(name)
    if found is not None:
        return found.known.start, _end(data, keys[at + 1 :], found.known.end)
    start = _start(data, name, keys[:at])
    return start, _end(data, keys[at + 1 :], start) if start else 0


def _start(data: bytes, name: str, before: list[str]) -> int:
    """Where the list of messages begins, behind its bracket; 0 when it is not found."""
    key = b'"' + name.encode() + b'"'
    at = -1
    for _ in range(_TRIES):
        at = data.find(key, at + 1)
        if at < 0:
            return 0
        bracket = _skip(data, at + len(key), b":")
        opens = _skip(data, bracket, b"[") if bracket else 0
        if opens and _keys(data[: opens - 1] + b"0}") == [*before, name]:
            return opens
    return 0


def _end(data: bytes, after: list[str], least: int) -> int:
    """Where the last message ends, before the bracket that closes the list; 0 when it is not found."""
    at = len(data)
    for _ in range(_TRIES):
        at = data.rfind(b"]", least, at)
        if at < 0:
            return 0
        end = len(data[max(least, at - 64) : at].rstrip(_BLANK)) + max(least, at - 64)
        if data[end - 1 : end] == b"}" and _keys(b'{"":0' + data[at + 1 :]) == ["", *after]:
            return end
    return 0


def _skip(data: bytes, at: int, expected: bytes) -> int:
    """The place behind this one byte, blanks before it passed over; 0 when something else stands there."""
    while data[at : at + 1] and data[at : at + 1] in _BLANK:
        at += 1
    return at + 1 if data[at : at + 1] == expected else 0


def _keys(text: bytes) -> list[str] | None:
    try:
        return list(orjson.loads(text))
    except ValueError:
        return None
