"""The natural id of a conversation: what its requests carry when the pool has nothing better.

Fixed when the conversation is first seen. It is the session value that the client sent, for the first conversation
with that value; any other gets a minted id. Minted ids are derived, so they are the same after a restart.
"""

import re
import struct
from collections import OrderedDict
from collections.abc import Callable

from pool.ids import BASE62
from pool.model import Natural, Shape
from proxy.conversation.mac import mac

_SIZE = 32
_FIELDS = struct.Struct(">IHHHHI")
_SES = re.compile(r"ses_[0-9a-f]{12}[0-9A-Za-z]{14}")


def shape_of(*values: str | None) -> Shape:
    """OpenCode's shape if any of a client's values has it."""
    for value in values:
        if value and _SES.fullmatch(value):
            return Shape.SES
    return Shape.UUID


def digest_of(secret: bytes, value: str) -> str:
    """16 hex that may be written down in place of a client's value."""
    return mac(secret, "value", value, _SIZE).hex()[:16]


def mint(secret: bytes, what: str, shape: Shape) -> Natural:
    """The minted id of ``what`` (a label, a scope): stable, nobody else can compute it, and it may be written down."""
    if shape is Shape.SES:
        return Natural(_ses(mac(secret, "natural\0ses", what, _SIZE)), True)
    return Natural(_uuid(mac(secret, "natural\0uuid", what, _SIZE)), True)


class Naturals:
    """Who uses which client's value as its natural id.

    ``holder`` tells the label of the conversation whose stored binding holds a digest, which is how a claim outlives
    a restart. At most ``remember`` claims of forgotten conversations are kept.
    """

    def __init__(self, secret: bytes, holder: Callable[[str], str | None], remember: int) -> None:
        self._secret = secret
        self._holder = holder
        self._live: dict[str, str] = {}
        self._past: OrderedDict[str, str] = OrderedDict()
        self.remember = remember

    def fix(self, label: str, value: str | None, shape: Shape) -> Natural:
        """The natural id of a conversation that is seen for the first time."""
        # A field's value is sent as it is, so it must be one that any server reads alike.
        if value is not None and value.isascii():
            digest = digest_of(self._secret, value)
            owner = self._live.get(digest) or self._past.get(digest) or self._holder(digest)
            if owner is None or owner == label:
                self._past.pop(digest, None)
                self._live[digest] = label
                return Natural(value, False, digest)
        return mint(self._secret, label, shape)

    def release(self, natural: Natural) -> None:
        """The conversation is forgotten; its claim is kept for a while."""
        label = self._live.pop(natural.digest, None)
        if label is None:
            return
        self._past[natural.digest] = label
        while len(self._past) > self.remember:
            self._past.popitem(last=False)


def _uuid(raw: bytes) -> str:
    """A version 4 UUID of these bits (RFC 9562, section 5.4)."""
    low, mid, high, clock, node, rest = _FIELDS.unpack_from(raw)
    return f"{low:08x}-{mid:04x}-{high & 0xFFF | 0x4000:04x}-{clock & 0x3FFF | 0x8000:04x}-{node:04x}{rest:08x}"


def _ses(raw: bytes) -> str:
    rest = int.from_bytes(raw[6:], "big")
    tail = []
    for _ in range(14):
        rest, digit = divmod(rest, 62)
        tail.append(BASE62[digit])
    return f"ses_{raw[:6].hex()}{''.join(tail)}"
