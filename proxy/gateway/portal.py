"""A web page in the gateway's place: the log-in page of a network, or of whatever else ``upstream.base_url`` leads to.

The gateway answers an inference request with JSON or with an event stream, and its refusals with an error status. A
network that wants a log-in first answers plain HTTP itself: with 511 (RFC 6585, section 6, which no origin server
sends), by sending the browser elsewhere, or with the page itself. An error status with a page stays what it is: the
network in front of the gateway sends those, too.
"""

from collections.abc import Sequence
from typing import Final

Field = tuple[bytes, bytes]

_LOGIN_REQUIRED: Final = 511
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def suspected(status: int, fields: Sequence[Field], host: bytes) -> bool:
    """Can the head be a page's? ``host`` is the gateway's, as the Host field names it."""
    if status == _LOGIN_REQUIRED:
        return True
    if status >= 400 or b"html" not in _value(fields, b"content-type").lower():
        return False
    return status < 300 or _leads_elsewhere(_value(fields, b"location"), host)


def is_page(status: int, body: bytes) -> bool:
    """Is what was suspected a page, by the first bytes of it? Only a 2xx has to show them."""
    return not 200 <= status < 300 or body.removeprefix(_BYTE_ORDER_MARK).lstrip().startswith(b"<")


def _value(fields: Sequence[Field], wanted: bytes) -> bytes:
    return next((value for name, value in fields if name.lower() == wanted), b"")


def _leads_elsewhere(location: bytes, host: bytes) -> bool:
    scheme, found, rest = location.partition(b"://")
    return bool(found) and scheme.lower() in {b"http", b"https"} and rest.partition(b"/")[0].lower() != host.lower()
