"""Where something is found: by a key the lines that have it, by a pair of words the texts that may be quoted."""

from collections.abc import Hashable
from itertools import islice
from typing import Final, Generic, TypeVar

from proxy.conversation.lineage import Lineage
from proxy.conversation.quoting import NOWHERE, Key, anchor, pairs_of, singles_of

MOST: Final = 256  # things with one key that are looked at
_ALIKE: Final = 16  # lines that said the same, the latest, of which one may be quoted
_ALIKE_TEXTS: Final = 64  # texts with one pair of words, the latest, that are looked for

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Hashable)


class Postings(Generic[K, V]):
    """What has a key. Most keys belong to one thing, which is then stored by itself."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[K, V | dict[V, None]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(self, key: K, thing: V) -> None:
        """It has this key now."""
        there = self._found.setdefault(key, thing)
        if isinstance(there, dict):
            there[thing] = None
        elif there != thing:
            self._found[key] = {there: None, thing: None}

    def discard(self, key: K, thing: V) -> bool:
        """It has the key no more. True if it was the last that had it."""
        there = self._found.get(key)
        if isinstance(there, dict):
            there.pop(thing, None)
            if there:
                return False
        elif there is None or there != thing:
            return False
        del self._found[key]
        return True

    def get(self, key: K, most: int = MOST) -> list[V]:
        """What has this key, what has it longest last; at most so many."""
        there = self._found.get(key)
        if there is None:
            return []
        return list(islice(reversed(there), most)) if isinstance(there, dict) else [there]

    def has(self, key: K) -> bool:
        """Has anything this key?"""
        return key in self._found

    def known(self, keys: set[K]) -> set[K]:
        """Those of the keys that anything has."""
        return self._found.keys() & keys


Quoted = tuple[str, list[Lineage], list[Lineage]]  # a text, the lines that were answered so, those that asked so


class Quotes:
    """Texts that may be quoted, and whose they are. Lines that have the same text share it."""

    __slots__ = ("_texts", "_words", "answers", "questions")

    def __init__(self) -> None:
        self.answers: Postings[str, Lineage] = Postings()
        self.questions: Postings[str, Lineage] = Postings()
        self._texts: Postings[Key, str] = Postings()
        self._words = 0  # texts that are looked for by a single word

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, owners: Postings[str, Lineage], text: str, line: Lineage) -> None:
        """The line has this text now, as one of these ``owners``. One without a word is not looked for."""
        if not (self.answers.has(text) or self.questions.has(text)):
            key = anchor(text)
            if key is NOWHERE:
                return
            self._texts.add(key, text)
            self._words += not key[1]
        owners.add(text, line)

    def discard(self, owners: Postings[str, Lineage], text: str, line: Lineage) -> None:
        """The line has it no more."""
        if owners.discard(text, line) and not (self.answers.has(text) or self.questions.has(text)):
            key = anchor(text)
            self._texts.discard(key, text)
            self._words -= not key[1]

    def within(self, text: str) -> list[Quoted]:
        """The texts that this one contains, with the lines that have them: of many alike, the latest."""
        keys = pairs_of(text)
        if self._words:
            keys |= singles_of(text)
        return [
            (quote, self.answers.get(quote, _ALIKE), self.questions.get(quote, _ALIKE))
            for key in self._texts.known(keys)
            for quote in self._texts.get(key, _ALIKE_TEXTS)
            if quote in text
        ]
