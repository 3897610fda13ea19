"""Keyed hashes of what a conversation consists of: 64 bits, made with the installation's secret, whole texts.

The lowest bit of a text's hash says whether the text is telling, that is, long enough not to be said twice by
accident. A hash of 0 stands for nothing.
"""

import re
from hashlib import blake2b
from typing import Final

import orjson

from proxy.conversation.normalise import TELLING, normalise

MASK: Final = (1 << 64) - 1
_PRIME: Final = 0x9E37_79B9_7F4A_7C15  # 2**64 over the golden ratio: odd, and its bits are well spread
_MEMO_MAX = 16_384  # texts of each kind whose hash is kept

USER: Final = b"user"
ASSISTANT: Final = b"assistant"
CALLS: Final = b"calls"
TOOL_ID: Final = b"tool-id"
OTHER: Final = b"other"
_KINDS: Final = (USER, ASSISTANT, CALLS, TOOL_ID, OTHER)

_NO_ALNUM: Final = re.compile(r"[^0-9A-Za-z]+")
_USUAL: Final = re.compile(r"^(?:functions|function|chatcmpl|toolu|tools|tool|call|fc)+")
_LETTER_AND_DIGIT: Final = re.compile(r"[A-Za-z].*[0-9]|[0-9].*[A-Za-z]")
_SHORTEST_ID = 12
_SHORTEST_REST = 8


def combine(before: int, after: int) -> int:
    """One hash of two, in this order; the same in every process."""
    return ((before ^ (before >> 29)) * _PRIME + after + 1) & MASK


class Hasher:
    """Hashes texts, calls and ids for one installation. What it remembers is hashes only."""

    __slots__ = ("_bases", "_memo")

    def __init__(self, secret: bytes) -> None:
        key = blake2b(secret, digest_size=32, person=b"ocpool evidence").digest()
        self._bases = {kind: blake2b(digest_size=8, key=key, person=kind) for kind in _KINDS}
        self._memo: dict[bytes, dict[int, int]] = {kind: {} for kind in _KINDS}

    def text(self, kind: bytes, text: str) -> int:
        """The hash of a whole text, normalised."""
        memo = self._memo[kind]
        seen = hash(text)  # keyed per process, and nothing else reads a text as fast
        known = memo.get(seen)
        if known is None:
            known = self.normal(kind, normalise(text))
            _keep(memo, seen, known)
        return known

    def normal(self, kind: bytes, text: str) -> int:
        """The hash of a text that is normalised already."""
        base = self._bases[kind].copy()
        base.update(text.encode("utf-8", "surrogatepass"))
        value = int.from_bytes(base.digest(), "little") | 2
        return value | 1 if len(text) >= TELLING else value & ~1

    def raw(self, kind: bytes, data: bytes) -> int:
        """The hash of bytes, never 0 or 1."""
        base = self._bases[kind].copy()
        base.update(data)
        return int.from_bytes(base.digest(), "little") | 2

    def calls(self, calls: list[tuple[str, object]]) -> int:
        """The hash of an answer's tool calls, as (name, arguments): canonical, and without their ids."""
        memo = self._memo[CALLS]
        try:
            seen = hash(tuple(calls))
        except TypeError:  # arguments that came as an object
            return self._calls(calls)
        known = memo.get(seen)
        if known is None:
            known = self._calls(calls)
            _keep(memo, seen, known)
        return known

    def call(self, identity: str, name: str) -> int:
        """The hash of the id of a call of this function, odd if the id looks random. Clients sanitise ids."""
        memo = self._memo[TOOL_ID]
        seen = hash((identity, name))
        known = memo.get(seen)
        if known is None:
            value = self.raw(TOOL_ID, _NO_ALNUM.sub("", identity).encode("utf-8", "surrogatepass"))
            known = value | 1 if random_id(identity, name) else value & ~1
            _keep(memo, seen, known)
        return known

    def _calls(self, calls: list[tuple[str, object]]) -> int:
        return self.normal(CALLS, "\n".join([f"{name}\0{_canonical(arguments)}" for name, arguments in calls]))


def _keep(memo: dict[int, int], seen: int, known: int) -> None:
    if len(memo) >= _MEMO_MAX:
        memo.clear()
    memo[seen] = known


def random_id(text: str, name: str) -> bool:
    """Does this id of a call of the function ``name`` look random, so that it proves where it came from?

    Some models count their calls (``functions.read:0``, ``read_3``, ``call00003``); two chats share such ids.
    """
    bare = _NO_ALNUM.sub("", text)
    if len(bare) < _SHORTEST_ID:
        return False
    rest = bare.replace(_NO_ALNUM.sub("", name), "", 1) if name else bare
    rest = _USUAL.sub("", rest)
    return len(rest) >= _SHORTEST_REST and _LETTER_AND_DIGIT.search(rest) is not None


def _canonical(arguments: object) -> str:
    """Arguments as one spelling of their JSON; what is no JSON, as it is."""
    if isinstance(arguments, str):
        try:
            arguments = orjson.loads(arguments) if arguments else {}
        except ValueError:
            return str(arguments).strip()
    try:
        return orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, ValueError, RecursionError):
        return ""
