"""Where probes may go and on whose account: what live traffic has shown, kept in memory only.

A probe uses the path last used for its model and either ``probe.api_key`` (then its spares serve anyone) or the
credential last seen for the provider in its own scope, with the ``x-opencode-org-id`` that came with it. Nothing here
is written down or logged.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from config.settings import Settings
from proxy.gateway.paths import OPENCODE_GO, Target, base_path, provider_of

Field = tuple[bytes, bytes]
Key = TypeVar("Key")
Value = TypeVar("Value")

# What is sent to prove who asks. Cookies are not remembered: they belong to a browser.
_KEY_FIELDS = frozenset({b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"})
_ORGANISATION = b"x-opencode-org-id"
_LONGEST_NAME = len(_ORGANISATION)

# The literal that OpenCode sends for its anonymous free models. Probing on it is nobody's account.
_NOBODY = frozenset({b"", b"public"})

# The APIs a probe can speak, and how their paths end.
ENDINGS = {"completions": b"/chat/completions", "responses": b"/responses", "messages": b"/messages"}

_MOST_CREDENTIALS = 256
_MOST_PATHS = 1024


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """Everything a probe needs but the id. ``scope`` is "" when its spares may serve any caller."""

    provider: str
    model: str
    api: str
    path: bytes
    scope: str
    credential: tuple[Field, ...] = field(repr=False)


class Targets:
    """The last path per provider and model, the last credential per provider and scope; bounded."""

    def __init__(self, settings: Settings) -> None:
        self._paths: dict[tuple[str, str], tuple[str, bytes]] = {}
        self._last_path: dict[str, tuple[str, bytes]] = {}
        self._credentials: dict[tuple[str, str], tuple[Field, ...]] = {}
        self._last_scope: dict[str, str] = {}
        self._latest: tuple[Target, str, Sequence[Field], str] | None = None  # what was remembered last
        self._organisations: dict[str, bytes] = {}  # by digest of the key they came with
        self.reconfigure(settings)

    def reconfigure(self, settings: Settings) -> None:
        """Obey other settings from now on."""
        secret = settings.probe.api_key
        self._api_key = secret.get_secret_value().encode() if secret is not None else None
        self._settings = settings

    @property
    def shared_key(self) -> bool:
        """Are probes paid by a configured key, so that their spares serve any caller?"""
        return self._api_key is not None

    def remember(self, target: Target, model: str, fields: Sequence[Field], scope: str) -> None:
        """Note a live request's path and credential."""
        latest = (target, model, fields, scope)
        if latest == self._latest or target.api not in ENDINGS:
            return
        self._latest = latest
        place = (target.api, target.upstream.partition(b"?")[0])
        _put(self._paths, (target.provider, model), place, _MOST_PATHS)
        self._last_path[target.provider] = place
        keys, organisation = _credential(fields)
        if not keys:
            return
        if organisation is not None:
            _put(self._organisations, _digest(_bare(keys[0][1])), organisation[1], _MOST_CREDENTIALS)
            keys.append(organisation)
        _put(self._credentials, (target.provider, scope), tuple(keys), _MOST_CREDENTIALS)
        self._last_scope[target.provider] = scope

    def target_for(self, provider: str, model: str, scope: str | None = None) -> ProbeTarget | None:
        """Where and as whom to probe; None when there is no credential for that scope (None: any, the last seen)."""
        api, path = self._place(provider, model)
        if self._api_key is not None:
            return ProbeTarget(provider, model, api, path, "", self._own(api, self._api_key))
        if scope is None:
            scope = self._last_scope.get(provider, "")
        credential = self._credentials.get((provider, scope))
        return None if credential is None else ProbeTarget(provider, model, api, path, scope, credential)

    def missing(self, provider: str) -> str | None:
        """Why nothing can be probed for a provider, in words for ``status``; None when something can."""
        if self._api_key is not None or provider in self._last_scope:
            return None
        return "no credential: none seen in live traffic yet, and neither probe.api_key nor OPENCODE_API_KEY is set"

    def _place(self, provider: str, model: str) -> tuple[str, bytes]:
        known = self._paths.get((provider, model)) or self._last_path.get(provider)
        return known if known is not None else ("completions", chat_path(self._settings, provider))

    def _own(self, api: str, key: bytes) -> tuple[Field, ...]:
        """The configured key as that API takes it, with the organisation seen beside the same key, if any."""
        first: Field = (b"x-api-key", key) if api == "messages" else (b"authorization", b"Bearer " + key)
        organisation = self._organisations.get(_digest(key))
        return (first,) if organisation is None else (first, (_ORGANISATION, organisation))


def chat_path(settings: Settings, provider: str) -> bytes:
    """The chat-completions path of a provider where no traffic has shown one."""
    tree = settings.upstream.default_path.rstrip("/").encode()
    if provider_of(tree + b"/") != provider:
        tree = b"/zen/go/v1" if provider == OPENCODE_GO else b"/zen/v1"
    return base_path(settings.upstream.base_url).encode() + tree + ENDINGS["completions"]


def _credential(fields: Sequence[Field]) -> tuple[list[Field], Field | None]:
    keys: list[Field] = []
    organisation: Field | None = None
    for one in fields:
        name, value = one
        if len(name) > _LONGEST_NAME:
            continue
        lower = name.lower()
        if lower in _KEY_FIELDS:
            if _bare(value) not in _NOBODY:
                keys.append(one)
        elif lower == _ORGANISATION:
            organisation = one
    return keys, organisation


def _bare(value: bytes) -> bytes:
    """A key without its scheme: the same key may come as a bearer token or on its own."""
    value = value.strip()
    return value[7:].strip() if value[:7].lower() == b"bearer " else value


def _digest(key: bytes) -> str:
    return hashlib.sha256(key).hexdigest()


def _put(table: dict[Key, Value], key: Key, value: Value, most: int) -> None:
    """Put at the young end; the oldest goes when there are too many."""
    table.pop(key, None)
    table[key] = value
    if len(table) > most:
        del table[next(iter(table))]
