"""Prompts as an endpoint's cache sees them: a count of tokens and a fingerprint after each block.

A cache belongs to an endpoint, a session and a model. It holds for about five minutes after its last use, in blocks of
128 tokens.
"""

import zlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

TOKEN_BYTES: Final = 4
BLOCK_TOKENS: Final = 128
BLOCK_BYTES: Final = BLOCK_TOKENS * TOKEN_BYTES
TTL_MS: Final = 300_000.0
PREFIXES: Final = 4  # a title call must not push the conversation out
MAX_CACHES: Final = 8192


class Prompt(NamedTuple):
    """A prompt: its tokens, and for each whole block a fingerprint of all text up to its end."""

    tokens: int
    blocks: Sequence[int]


def prompt_of(text: bytes) -> Prompt:
    """The prompt that this text is."""
    blocks = array("I")
    running = 0
    view = memoryview(text)
    for start in range(0, len(text) - BLOCK_BYTES + 1, BLOCK_BYTES):
        running = zlib.crc32(view[start : start + BLOCK_BYTES], running)
        blocks.append(running)
    return Prompt(max(1, len(text) // TOKEN_BYTES), blocks)


def common_blocks(one: Sequence[int], other: Sequence[int]) -> int:
    """How many blocks both begin with. A fingerprint covers all before it, so halving finds the place."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[middle - 1] == other[middle - 1]:
            low = middle
        else:
            high = middle - 1
    return low


CacheKey = tuple[str, str, str]  # endpoint (or stack), session, model


class PromptCaches:
    """The caches of all endpoints, bounded."""

    def __init__(self) -> None:
        self._caches: OrderedDict[CacheKey, list[tuple[float, Sequence[int]]]] = OrderedDict()

    def cached_tokens(self, key: CacheKey, prompt: Prompt, now_ms: float) -> int:
        """How many of the prompt's tokens need not be read again."""
        alive = [blocks for until, blocks in self._caches.get(key, ()) if until > now_ms]
        longest = max((common_blocks(blocks, prompt.blocks) for blocks in alive), default=0)
        return min(longest * BLOCK_TOKENS, prompt.tokens)

    def store(self, key: CacheKey, prompt: Prompt, now_ms: float) -> None:
        """The prompt was read; a prefix of it that was held before is replaced."""
        if not prompt.blocks:
            return
        kept = [
            (until, blocks)
            for until, blocks in self._caches.pop(key, [])
            if until > now_ms and common_blocks(blocks, prompt.blocks) < len(blocks)
        ]
        self._caches[key] = [*kept[-PREFIXES + 1 :], (now_ms + TTL_MS, prompt.blocks)]
        while len(self._caches) > MAX_CACHES:
            self._caches.popitem(last=False)
