"""What many events of a chat stream say together, found without parsing each: most of them are one piece of text.

Exact where it answers; where the events have any other shape, they are parsed. In JSON a quote inside a string has a
backslash before it, so that none of the patterns here is ever found inside of one.
"""

import re

import orjson

_TEXT = re.compile(rb'"delta":\{(?:"role":"assistant",)?"content":("[^"\\]*(?:\\.[^"\\]*)*")')
_OPENS = b'"delta":{"content":"'
_THINKS = (b'"delta":{"reasoning_content":"', b'"delta":{"reasoning":"')
# The end of a choice, a call of a tool, a second choice: anything that is more than a piece of text. Where JSON is
# written with spaces, none of these would be found.
_MORE = (b'"finish_reason":"', b'"tool_calls":[', b'"function_call":{', b'"index":1', b'": ')


def texts(batch: bytes, count: int) -> list[str] | None:
    """The text of ``count`` events, in order; None where they must be parsed.

    Raises:
        ValueError: a string is none.
    """
    opening = batch.count(_OPENS)
    if opening + 1 < count:
        thinking = sum(batch.count(mark) for mark in _THINKS)
        if thinking != count or b'"content":"' in batch or any(mark in batch for mark in _MORE):
            return None
        return []
    found = _TEXT.findall(batch)
    if len(found) != count or any(mark in batch for mark in _MORE):
        return None
    said: list[str] = orjson.loads(b"[%b]" % b",".join(found))
    return said


def may_tell(data: bytes, count: int) -> bool:
    """May one of these events hold token counts or an error?

    An error has no choices. Some providers put ``"usage":null`` into every event.
    """
    if data.count(b'"choices":[{') < count and (b'error"' in data or b'failed"' in data):
        return True
    return b'"usage' in data and data.count(b'"usage') > data.count(b'"usage":null')
