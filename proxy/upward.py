"""The head that goes upstream, as a form with two blanks: the session's id and the length of the body."""

from collections.abc import Sequence
from typing import Final

from proxy.arrival import RequestHead
from proxy.gateway.fields import depends_on_session, rewrite
from proxy.wire.head import Field, lower, request_head

# What stands in the blanks while a form is made. NUL is in no field that the parser lets through.
_SESSION: Final = b"\0session\0"
_LENGTH: Final = b"\0length\0"


class Form:
    """A head upstream, filled in for one request after the other.

    ``sole`` is the client's own session id where that is all that is ever changed about its fields.
    """

    __slots__ = ("_pattern", "sole")

    def __init__(self, made: bytes, sole: bytes | None) -> None:
        pattern = made.replace(b"%", b"%%")
        self._pattern = pattern.replace(_SESSION, b"%(session)b").replace(_LENGTH, b"%(length)d")
        self.sole = sole

    def fill(self, session: bytes | None, length: int | None) -> bytes:
        """The head for one request."""
        return self._pattern % {b"session": session, b"length": length}


def form_of(head: RequestHead, target: bytes, host: bytes, session_header: bytes, *, rewritten: bool) -> Form | None:
    """The form of a head that is not chunked; ``rewritten`` with our session id, else with the client's own fields.

    None where it cannot have one, because more of it than the two blanks depends on the request.
    """
    fields = [(name, _LENGTH if lower(name) == b"content-length" else value) for name, value in head.fields]
    own = rewrite(fields, session_header=session_header, session=None, parent=_nobody)
    sent, sole = own, None
    if rewritten:
        if depends_on_session(fields, session_header):
            return None
        sent = rewrite(fields, session_header=session_header, session=_SESSION, parent=_nobody)
        sole = _sole(own, sent, session_header)
    return Form(request_head(head.method, target, host, sent, chunked=False), sole)


def _sole(own: Sequence[Field], sent: Sequence[Field], session_header: bytes) -> bytes | None:
    """The one session id of the client, if putting ours in its place is the only difference."""
    chosen = session_header.lower()
    values = [value for name, value in own if name.lower() == chosen]
    if len(values) != 1:
        return None
    same = [(name, _SESSION if name.lower() == chosen else value) for name, value in own]
    return values[0] if same == list(sent) else None


def _nobody(_value: bytes) -> bytes | None:
    return None
