"""How an endpoint spells its replies; each difference was seen on the real gateway."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Style:
    """The spelling of one reply.

    Attributes:
        done: ``[DONE]`` ends a chat stream, or is missing, or is followed by an event with the cost.
        usage: On a chunk of its own; on the finish chunk and again; null on every chunk before; or never.
        line_end: What ends a line of a stream; two of them end an event.
        split: Whether the stream is cut at arbitrary bytes, inside a line or a character too.
        reasoning: The field that carries thinking, if any.
        cache_fields: Where the cached tokens are told.
        event_tokens: Tokens in each event.
    """

    done: Literal["present", "absent", "cost"] = "present"
    usage: Literal["once", "twice", "null", "absent"] = "once"
    line_end: Literal["\n", "\r\n"] = "\n"
    split: bool = False
    reasoning: Literal["", "reasoning_content", "reasoning"] = ""
    cache_fields: Literal["openai", "deepseek", "moonshot"] = "openai"
    event_tokens: int = 4


PLAIN = Style()
DEEPSEEK = Style(usage="null", reasoning="reasoning_content", cache_fields="deepseek")
TWICE = Style(usage="twice")
WINDOWS = Style(line_end="\r\n", split=True, done="absent")
MOONSHOT = Style(split=True, cache_fields="moonshot")
