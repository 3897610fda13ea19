"""Who may talk to us: loopback is no trust boundary, so Host, Origin and token are checked before anything else."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from config.settings import Settings
from proxy.errors import Forbidden, TokenRefused

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
_FRIENDLY_SITES = frozenset({b"same-origin", b"none"})


@dataclass(slots=True)
class Guard:
    """The listener's rules, compiled from the settings."""

    hosts: frozenset[str] = _LOCAL
    origins: frozenset[str] = frozenset()
    tokens: dict[str, bytes] = field(default_factory=dict)  # scope name -> token

    @classmethod
    def of(cls, settings: Settings) -> "Guard":
        """From ``listen.allowed_hosts``, ``allowed_origins``, ``token`` and ``tokens``."""
        listen = settings.listen
        tokens = {name: token.get_secret_value().encode() for name, token in listen.tokens.items()}
        if listen.token is not None:
            tokens[""] = listen.token.get_secret_value().encode()
        return cls(
            _LOCAL | {host.lower() if has_port(host) else host.lower().strip("[]") for host in listen.allowed_hosts},
            frozenset(origin.rstrip("/").lower() for origin in listen.allowed_origins),
            tokens,
        )

    def check_host(self, host: bytes | None) -> None:
        """Refuse a Host outside the allow-list: a DNS name that was made to point here is an attack."""
        if host is None:
            return
        if host_name(host) not in self.hosts and host.strip().decode("latin-1").lower() not in self.hosts:
            raise Forbidden("This Host is not allowed. Use localhost or 127.0.0.1, or add it to listen.allowed_hosts.")

    def check_origin(self, seen: Mapping[bytes, bytes]) -> None:
        """Refuse what a browser sends on behalf of a page that is not ours and not allowed."""
        origin = seen.get(b"origin")
        if origin is not None:
            if self.allowed_origin(origin) or _same_origin(origin, seen.get(b"host")):
                return
            raise Forbidden("This Origin is not allowed. Add it to listen.allowed_origins if the page is yours.")
        site = seen.get(b"sec-fetch-site")
        if site is not None and site.strip().lower() not in _FRIENDLY_SITES:
            raise Forbidden("A browser sent this for another site; it is not allowed.")

    def allowed_origin(self, origin: bytes) -> bool:
        """Is this one of ``listen.allowed_origins``?"""
        return origin.decode("latin-1").rstrip("/").lower() in self.origins

    def check_token(self, sent: bytes | None) -> str | None:
        """The scope name whose token was sent; None where no token is required.

        Raises:
            TokenRefused: a token is required and this is none of them.
        """
        if not self.tokens:
            return None
        found = None
        for name, token in self.tokens.items():
            if sent is not None and hmac.compare_digest(sent, token):
                found = name
        if found is None:
            raise TokenRefused(
                "This listener wants its token: use a base URL with /t/<token>, or the header x-ocpool-token."
            )
        return found


def has_port(host: str) -> bool:
    """Does an entry of ``listen.allowed_hosts`` hold for one port only?"""
    return ":" in host.rpartition("]")[2]


def host_name(host: bytes) -> str:
    """The name in a Host field, in lower case, without port and brackets."""
    text = host.strip().decode("latin-1").lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0]


def allow_origin(origin: bytes | None) -> tuple[tuple[bytes, bytes], ...]:
    """What a browser wants to read before it shows an answer to an allowed page; nothing for anybody else."""
    if origin is None:
        return ()
    return ((b"Access-Control-Allow-Origin", origin), (b"Vary", b"Origin"))


def _same_origin(origin: bytes, host: bytes | None) -> bool:
    parts = urlsplit(origin.decode("latin-1").lower())
    return host is not None and parts.netloc == host.strip().decode("latin-1").lower()
