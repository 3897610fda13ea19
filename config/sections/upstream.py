"""``[upstream]``: the gateway that everything is sent to."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from config.sections.base import Section
from config.units import RESTART, FilePath, Millis, Text

_FIELD_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # a token of RFC 9110, section 5.6.2
_TAKEN = frozenset(
    {
        "authorization",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-api-key",
    }
)


def _url(text: str, example: str, *, schemes: frozenset[str], userinfo: bool) -> str:
    """Check a URL. The words of urllib are not passed on: they quote parts of a password."""
    try:
        parts = urlsplit(text)
        fine = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
        parts = urlsplit("")
    if not fine or " " in text or not text.isascii():
        raise ValueError(f"must be {example}")
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise ValueError("must be a URL without a query or fragment")
    if "@" in parts.netloc and not userinfo:
        raise ValueError("must be a URL without a user name or password")
    return text.rstrip("/")


def _base_url(text: str) -> str:
    example = "a URL such as https://host or http://host:port"
    return _url(text, example, schemes=frozenset({"https", "http"}), userinfo=False)


def _proxy(text: str) -> str:
    """A proxy is spoken to in clear, as they all are; TLS runs inside the tunnel."""
    if text == "env":
        return text
    return _url(text, 'a URL such as http://proxy:3128, or "env"', schemes=frozenset({"http"}), userinfo=True)


def _prefix(text: str) -> str:
    if not text.startswith("/") or text.startswith("//") or not text.isascii() or any(c in text for c in " ?#"):
        raise ValueError("must be a path that starts with one slash, without a query")
    return text.rstrip("/")


def _field_name(text: str) -> str:
    if not _FIELD_NAME.fullmatch(text) or text.lower() in _TAKEN or text.lower().startswith("x-ocpool-"):
        raise ValueError("must be the name of a header that has no other meaning")
    return text.lower()


class UpstreamSection(Section):
    """The gateway that everything is sent to; no other machine is ever contacted."""

    base_url: Annotated[Text, AfterValidator(_base_url)] = Field(
        default="https://opencode.ai",
        description="Scheme, host and port of the gateway, where a path is put in front of every request's path.",
        json_schema_extra=RESTART,
    )
    default_path: Annotated[Text, AfterValidator(_prefix)] = Field(
        default="/zen/go/v1",
        description="What a client's /v1 stands for.",
    )
    session_header: Annotated[Text, AfterValidator(_field_name)] = Field(
        default="x-opencode-session",
        description="Header that carries the session id to the gateway.",
    )
    connect_timeout_ms: Millis = Field(
        default=10_000,
        ge=1,
        le=300_000,
        description="How long resolving, connecting and the TLS handshake may take together.",
        json_schema_extra=RESTART,
    )
    keepalive_ms: Millis = Field(
        default=15_000,
        ge=0,
        le=600_000,
        description="How long an idle upstream connection is kept for reuse, where 0 keeps none.",
        json_schema_extra=RESTART,
    )
    ca_file: FilePath | None = Field(
        default=None,
        description="File of PEM certificates to trust beside the system's.",
        json_schema_extra=RESTART,
    )
    proxy: Annotated[Text, AfterValidator(_proxy)] | None = Field(
        default=None,
        repr=False,
        description='HTTP proxy to reach the gateway through: a URL, or "env" for HTTPS_PROXY and NO_PROXY.',
        json_schema_extra=RESTART,
    )
