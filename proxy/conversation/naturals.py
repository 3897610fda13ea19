"""The natural id of a conversation: what its requests carry when the pool has nothing better.

Fixed when the conversation is first seen. It is the session value that the client sent, for the first conversation
with that value; any other gets a minted id. Minted ids are derived, so they are the same after a restart.
"""

import re
from collections import OrderedDict
from collections.abc import Callable
from hashlib import blake2b

from pool.ids import BASE62
from pool.model import Natural, Shape

_SES = re.compile(r"ses_[0-9a-f]{12}[0-9A-Za-z]{14}")


def shape_of(*values: str | None) -> Shape:
    """OpenCode's shape if any of a client's values has it."""
    return Shape.SES if any(value is not None and _SES.fullmatch(value) for value in values) else Shape.UUID


def digest_of(secret: bytes, value: str) -> str:
    """16 hex that may be written down in place of a client's value."""
    return _mac(secret, b"value\0" + value.encode()).hex()[:16]


def mint(secret: bytes, what: str, shape: Shape) -> Natural:
    """The minted id of ``what`` (a label, a scope): stable, and nobody else can compute it."""
    raw = _mac(secret, f"natural\0{shape}\0{what}".encode())
    value = _ses(raw) if shape is Shape.SES else _uuid(raw)
    return Natural(value, True, digest_of(secret, value))


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


def _mac(secret: bytes, what: bytes) -> bytes:
    """32 bytes that only the installation can compute. Keyed BLAKE2 is a MAC as it is (RFC 7693), and a fast one."""
    key = secret if len(secret) <= blake2b.MAX_KEY_SIZE else blake2b(secret).digest()
    return blake2b(what, key=key, digest_size=32).digest()


def _uuid(raw: bytes) -> str:
    """A version 4 UUID of these bits (RFC 9562, section 5.4)."""
    text = (raw[:6] + bytes((raw[6] & 0x0F | 0x40, raw[7], raw[8] & 0x3F | 0x80)) + raw[9:16]).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _ses(raw: bytes) -> str:
    rest = int.from_bytes(raw[6:], "big")
    tail = []
    for _ in range(14):
        rest, digit = divmod(rest, 62)
        tail.append(BASE62[digit])
    return f"ses_{raw[:6].hex()}{''.join(tail)}"
