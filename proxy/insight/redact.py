"""What may leave the process in a log line, an event, a metric or a status page, and what is masked.

Code that writes a fact is expected to pass a digest where the fact is an id, and no credential at all. The
``Redactor`` is the last line of defence behind that: it runs off the hot path, on every line that is written.
"""

import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from functools import lru_cache

MASK = "[redacted]"
SHORTEST = 12  # characters of the shortest thing the patterns below mask, but for paths
LONGEST = 2000  # characters of one fact: a client chooses some of them

_SECRET_NAMES = frozenset(
    {
        "api_key", "apikey", "authorization", "cookie", "password", "proxy_authorization", "secret",
        "set_cookie", "token", "x_api_key", "x_goog_api_key", "x_ocpool_token",
    }
)  # fmt: skip
_REQUEST_NAMES = frozenset({"log_id"})  # the gateway's own request number: support asks for it, it owns nothing

_PLAIN = (bool, int, float)
_FITS = (-(2**63), 2**64 - 1)  # what JSON encoders take

_SCHEME = re.compile(r"\b(bearer|basic|digest)\s+[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_KEY = re.compile(r"\b(?:sk|pk|rk|oc_sk|gsk|xai|ghp|AIza)[-_][A-Za-z0-9_-]{12,}")
_QUERY = re.compile(r"([?&](?:api[_-]?key|key|token|access_token|secret)=)[^&\s\"']+", re.IGNORECASE)
_USERINFO = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s@\"']+@", re.IGNORECASE)
_PATH_TOKEN = re.compile(r"/t/[^/\s?\"']+")
_ID = re.compile(
    r"\bses_[0-9A-Za-z]{26}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE
)


@lru_cache(maxsize=1024)
def digest(value: str | bytes) -> str:
    """The first 8 hex digits of SHA-256: enough to recognise an id by, useless to send as one."""
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return hashlib.sha256(raw).hexdigest()[:8]


_KEPT_LENGTH = 64
_KEPT = 4096


class _Name(IntEnum):
    """What the name of a fact says about its value."""

    ORDINARY = 0
    REQUEST = 1
    SECRET = 2


_ORDINARY, _REQUEST, _SECRET = _Name.ORDINARY, _Name.REQUEST, _Name.SECRET


@lru_cache(maxsize=512)
def _named(name: object) -> tuple[str, _Name]:
    """A fact's name as it is shown, and what it says."""
    text = str(name)
    if text.lower().replace("-", "_") in _SECRET_NAMES:
        return _utf8(text), _SECRET
    return _utf8(text), _REQUEST if text in _REQUEST_NAMES else _ORDINARY


class _Words(dict[str, str]):
    """Texts that somebody else has chosen, masked when they are first asked for: the few that come all day stay."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        self._mask = mask

    def __missing__(self, text: str) -> str:
        masked = self._mask(text)
        if len(text) <= _KEPT_LENGTH:
            if len(self) >= _KEPT:
                self.clear()
            self[text] = masked
        return masked


class Redactor:
    """Masks credentials, planted secrets and full ids in text and in facts; what comes out can be written as JSON.

    ``secrets`` are values that must not appear anywhere; ``learn`` adds one while running, and the oldest
    learned ones are forgotten beyond ``remember``. Values under 6 characters are ignored: they would mask
    ordinary words. ``words`` are short texts, masked: ``words[text]``.
    """

    def __init__(self, secrets: Iterable[str] = (), *, remember: int = 64) -> None:
        self._fixed = {secret for secret in secrets if len(secret) >= 6}
        self._learned: deque[str] = deque(maxlen=remember)
        self.words = _Words(self._string)
        self._pattern = self._compile()

    def learn(self, secret: str) -> None:
        """Mask this value from now on."""
        if len(secret) >= 6 and secret not in self._fixed and secret not in self._learned:
            self._learned.append(secret)
            self._pattern = self._compile()
            self.words.clear()

    def text(self, text: str, *, ids: bool = True) -> str:
        """The text with everything secret masked; ``ids`` turns full session ids into their digests."""
        if self._pattern is not None:
            text = self._pattern.sub(MASK, text)
        if text.isalnum() or (len(text) < SHORTEST and "/" not in text):
            return text  # every pattern below has a separator in it
        text = _SCHEME.sub(lambda found: f"{found[1]} {MASK}", text)
        text = _KEY.sub(MASK, text)
        if "/" in text or "?" in text:
            text = _USERINFO.sub(rf"\1{MASK}@", text)
            text = _PATH_TOKEN.sub(f"/t/{MASK}", text)
            text = _QUERY.sub(rf"\1{MASK}", text)
        return _ID.sub(lambda found: f"id:{digest(found[0])}", text) if ids else text

    def facts(self, facts: Mapping[str, object]) -> dict[str, object]:
        """The same facts, masked at every level; a fact whose name is a credential's is masked whole."""
        masked: dict[str, object] = {}
        words = self.words
        for name, value in facts.items():
            shown, how = _named(name)
            if type(value) is str and how is _ORDINARY:
                masked[shown] = words[value]
            else:
                masked[shown] = self._fact(how, value)
        return masked

    def _fact(self, how: _Name, value: object) -> object:
        if value is None or isinstance(value, _PLAIN):
            return value if not isinstance(value, int) or _FITS[0] <= value <= _FITS[1] else str(value)
        if how is _SECRET:
            return MASK
        if isinstance(value, str):
            return self._string(str(value), ids=how is not _REQUEST)
        if isinstance(value, Mapping):
            return self.facts(value)
        if isinstance(value, list | tuple | set | frozenset):
            return [self._fact(how, item) for item in value]
        return self._string(_shown(value))

    def _string(self, value: str, *, ids: bool = True) -> str:
        masked = self.text(_utf8(value[: 4 * LONGEST]), ids=ids)
        return masked if len(masked) <= LONGEST else f"{masked[:LONGEST]}..."

    def _compile(self) -> re.Pattern[str] | None:
        known = sorted({*self._fixed, *self._learned}, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, known))) if known else None


def _utf8(text: str) -> str:
    """Text without lone surrogates, which are no JSON."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def secrets_in(tree: object) -> Iterator[str]:
    """Every secret value of a settings tree: pydantic's ``SecretStr``, found by its one method."""
    reveal = getattr(tree, "get_secret_value", None)
    if callable(reveal):
        yield str(reveal())
        return
    if isinstance(tree, Mapping):
        children: Iterable[object] = [*tree.keys(), *tree.values()]
    elif isinstance(tree, list | tuple):
        children = tree
    elif declared := getattr(type(tree), "model_fields", None):
        children = [getattr(tree, name) for name in declared]
    else:
        return
    for child in children:
        yield from secrets_in(child)


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - a repr that raises must not cost the line
        return f"<{type(value).__name__}>"
