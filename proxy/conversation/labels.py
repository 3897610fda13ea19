"""The opaque names of conversations: what users see, what is written down, what a client may send back.

A label is 16 hex digits. The first 11 stand for the conversation, the other 5 prove that it was made here for
its scope: so a label that a client sends back is known again after a restart, with nothing stored.
"""

import hmac
import os
import re
from functools import lru_cache

from proxy.conversation.mac import mac
from proxy.conversation.precedence import NAME, OURS

_LABEL = re.compile(r"[0-9a-f]{16}")
_CORE = 11
TELLING_LENGTH = 16  # a value this long is one session in whatever field it stands; "1" or "main" is not
_NAMED = "name"


def identity(signal: str, value: str) -> str:
    """What makes a conversation the same one, within a scope, of a value sent as this signal.

    Clients send one session in several fields, not always all of them, so a long value counts alone; a short one may
    be equal by accident and counts together with its field. Names given to ocpool are a family of their own.
    """
    if signal in {NAME, OURS}:
        return f"{_NAMED}\0{value}"
    if len(value) >= TELLING_LENGTH:
        return f"\0{value}"
    return f"{signal}\0{value}"


@lru_cache(maxsize=4096)
def label_of(secret: bytes, scope: str, identity: str) -> str:
    """The label of a conversation: the same in every process and after every restart."""
    core = hmac.digest(secret, f"label\0{scope}\0{identity}".encode(), "sha256").hex()[:_CORE]
    return core + _proof(secret, scope, core)


def new_label(secret: bytes, scope: str) -> str:
    """The label of a conversation that nothing is known of yet."""
    core = os.urandom(6).hex()[:_CORE]
    return core + _proof(secret, scope, core)


def is_label(secret: bytes, scope: str, text: str) -> bool:
    """Was this text given out as a label to this scope? One in a million other texts of its form passes, too."""
    return _LABEL.fullmatch(text) is not None and text[_CORE:] == _proof(secret, scope, text[:_CORE])


def _proof(secret: bytes, scope: str, core: str) -> str:
    return mac(secret, f"proof\0{scope}", core, 8).hex()[: 16 - _CORE]
