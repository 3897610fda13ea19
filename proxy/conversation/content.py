"""The messages of one request, between the reading of its body and the decision about it. Then they are dropped."""

from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import orjson

from proxy.conversation.hashing import Hasher
from proxy.conversation.messages import SYSTEM, is_answer, text_of
from proxy.conversation.prefixes import Found, Known, Layout, Prefixes
from proxy.conversation.transcript import MAX_MESSAGES, Transcript

if TYPE_CHECKING:
    from proxy.conversation.body import BodyFacts

COUNTED: Final = 3
FIRST: Final = 4  # messages among which a summary or a quoted opener is looked for
_SYSTEM_END = 1024  # characters
_ROLE = itemgetter("role")
LISTS: Final = ("messages", "input")  # what the APIs call the conversation


class Content:
    """What a request says, read no further than somebody asks for.

    ``count`` is the number of messages that are no system's, to at most ``COUNTED``.
    """

    # Of most requests, which are named and small, nobody asks for any of these.
    _prefixes: Prefixes | None = None
    _data: bytes = b""
    _facts: "BodyFacts | None" = None
    _found: Found | None = None
    _known: Known | None = None
    _transcript: Transcript | None = None
    _first: list[Any] | None = None

    def __init__(self, document: dict[str, Any], name: str, messages: list[Any]) -> None:
        self._document = document
        self._name = name
        self._messages = messages
        self.count = counted(messages)

    def remembering(self, prefixes: Prefixes, data: bytes, facts: "BodyFacts", found: Found | None = None) -> None:
        """It may be remembered by its bytes: ``facts`` is what else they say, ``found`` how they began before.

        Where nothing behind the messages has changed, the document is empty: it was not read again.
        """
        self._prefixes, self._data, self._facts, self._found = prefixes, data, facts, found
        if found is not None:
            self._known = found.known
            self.count = min(COUNTED, found.known.layout.counted + self.count)

    def remember(self) -> None:
        """Know it by its bytes from now on, and what it says if that was read."""
        if self._prefixes is not None:
            keys = list(self._document)
            self._prefixes.remember(self._data, keys, self._layout(), self._transcript, self._found)

    def _layout(self) -> Layout:
        if self._known is not None and not self._document:
            return self._known.layout._replace(counted=self.count)
        assert self._facts is not None
        return Layout(self._name, self._facts, self.client(), self.count, self.opener_key(), self._system_key())

    def transcript(self, hasher: Hasher) -> Transcript | None:
        """The whole conversation as hashes; None when it is too long, or says nothing. Costs what is new."""
        if self._transcript is None:
            before = self._known.transcript if self._known is not None else None
            if before is None:
                self.whole()  # of what is known by its bytes nobody asked what it says
            if len(self._messages) > MAX_MESSAGES:
                return None
            transcript = before.copy() if before is not None else Transcript()
            transcript.extend(self._messages, hasher)
            self._transcript = transcript
            self.remember()
        return self._transcript if len(self._transcript) else None

    def opener_key(self) -> int:
        """What tells in no time whether a request opens as the last one did, in this process; 0 for nothing."""
        if self._known is not None:
            return self._known.layout.opener_key
        for message in self._messages:
            if isinstance(message, dict) and message.get("role") not in SYSTEM:
                return hash(text_of(message.get("content")))
        return 0

    def manner(self) -> int:
        """How its client writes requests here, in this process: what decides where nothing that is said does."""
        return hash((self.client(), self._system_key()))

    def client(self) -> int:
        """What tells the client apart from others, in this process: the keys that it sends, in its order, its tools."""
        document = self._document
        if self._known is not None and not document:
            return self._known.layout.client
        tools = document.get("tools")
        if not tools or not isinstance(tools, list):
            return hash(tuple(document))
        first = tools[0]
        function = first.get("function") if isinstance(first, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        return hash((*document, len(tools), name if isinstance(name, str) else None))

    def _system_key(self) -> int:
        """The ends of the system prompt, where clients put their name, the folder and the date."""
        if self._known is not None:
            return self._known.layout.system_key
        for message in self._messages[:FIRST]:
            if isinstance(message, dict) and message.get("role") in SYSTEM:
                text = text_of(message.get("content"))
                return hash((text[:_SYSTEM_END], text[-_SYSTEM_END:])) if len(text) > _SYSTEM_END else hash(text)
        return 0

    @property
    def alone(self) -> str | None:
        """The text, where one thing was said by the user and nothing else; None where there is more."""
        if self.count != 1 or self._known is not None:
            return None
        message = self.first()[0]
        content = message.get("content") if isinstance(message, dict) and message.get("role") == "user" else None
        return content if isinstance(content, str) else None

    def first_texts(self) -> list[str]:
        """The first few messages' texts, answers included. Empty where only what is new was parsed."""
        if self._known is not None:
            return []
        return [text_of(message.get("content")) for message in self.first() if isinstance(message, dict)]

    def first(self) -> list[Any]:
        """The first few messages that are no system's; no more are looked at than that takes."""
        if self._first is None:
            self._first = first_of(self._messages, FIRST)
        return self._first

    def opener(self) -> str:
        """The text of the first thing the user said."""
        for message in self._messages if self._known is None else ():
            if isinstance(message, dict) and message.get("role") not in SYSTEM and not is_answer(message):
                text = text_of(message.get("content"))
                if text:
                    return text
        return ""

    def latest(self) -> str:
        """The text of the latest message, if the user said it."""
        for message in reversed(self._messages[-FIRST:]):
            if isinstance(message, dict) and message.get("role") not in SYSTEM:
                return text_of(message.get("content")) if message.get("role") == "user" else ""
        return ""

    @property
    def partial(self) -> bool:
        """Are only the newest messages here, the others known by their bytes?"""
        return self._known is not None

    def whole(self) -> None:
        """Read all of the messages after all, because what was remembered of them did not help."""
        if self._known is not None:
            self._document = orjson.loads(self._data)
            self._messages = self._document[self._name]
            self._known = self._found = self._transcript = self._first = None

    def drop(self) -> None:
        """It was decided: let go of everything that can be read."""
        self.__dict__.clear()


def counted(messages: list[Any]) -> int:
    """How many messages are no system's, to at most ``COUNTED``."""
    try:
        roles = [*map(_ROLE, messages[:FIRST])]
    except (KeyError, TypeError):  # not all of them have one
        return len(first_of(messages, COUNTED))
    count = len(roles) - sum(map(roles.count, SYSTEM))
    if count >= COUNTED:
        return COUNTED
    return count if len(messages) <= FIRST else len(first_of(messages, COUNTED))


def first_of(messages: list[Any], most: int) -> list[Any]:
    """The first messages that are no system's, however many of those there are between."""
    first: list[Any] = []
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in SYSTEM:
            first.append(message)
            if len(first) == most:
                break
    return first
