"""``[listen]``: where clients connect, who may, and how much of their requests is held."""

import ipaddress
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from config.sections.base import Section
from config.units import RESTART, Bytes, Count, Millis, Secret, Switch, Text

# RFC 3986 unreserved, and what base64 adds but for the slash: a token also travels as a path segment.
_TOKEN = re.compile(r"[A-Za-z0-9._~+=-]{1,256}")
_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(?::\d{1,5})?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@]+")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


def is_loopback(host: str) -> bool:
    """Does ``host`` name this machine only? A name other than localhost may resolve to anything, so it does not."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _host(text: str) -> str:
    text = text.removeprefix("[").removesuffix("]")
    if any(mark in text for mark in " /@?#[]"):
        raise ValueError("must be an address or a host name without a port")
    return text


def _token(secret: SecretStr) -> SecretStr:
    if not _TOKEN.fullmatch(secret.get_secret_value()):
        raise ValueError("must be 1 to 256 of the characters A-Z a-z 0-9 . _ ~ + = -")
    return secret


def _allowed_host(text: str) -> str:
    text = text.lower()
    if not _HOST.fullmatch(text):
        raise ValueError("must be a host name or address, with or without a port, such as ocpool:8377")
    return text


def _origin(text: str) -> str:
    text = text.lower().removesuffix("/")
    if not _ORIGIN.fullmatch(text):
        raise ValueError("must be an origin such as https://chat.example.org, without a path")
    return text


def _scope_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError("must be named with 1 to 64 of the characters A-Z a-z 0-9 . _ -")
    return text


Token = Annotated[Secret, AfterValidator(_token)]


class ListenSection(Section):
    """Where clients connect, who may, and how much of their requests is held."""

    host: Annotated[Text, AfterValidator(_host)] = Field(
        default="127.0.0.1",
        description="Address to listen on, where the default also listens on [::1] if the machine has it.",
        json_schema_extra=RESTART,
    )
    port: Count = Field(
        default=8377,
        ge=0,
        le=65535,
        description="Port to listen on, where 0 takes any free one.",
        json_schema_extra=RESTART,
    )
    token: Token | None = Field(
        default=None,
        description="Secret that a client must send as x-ocpool-token or in the path as /t/<token>/.",
    )
    tokens: dict[Annotated[Text, AfterValidator(_scope_name)], Token] = Field(
        default_factory=dict,
        max_length=256,
        description="Further tokens by name, each a scope of its own whose conversations never meet another's.",
    )
    insecure: Switch = Field(
        default=False,
        description="Listen beyond this machine without any token.",
    )
    allowed_hosts: tuple[Annotated[Text, AfterValidator(_allowed_host)], ...] = Field(
        default=(),
        max_length=256,
        description="Host names beyond localhost that a request may be addressed to, at any port unless one is given.",
    )
    allowed_origins: tuple[Annotated[Text, AfterValidator(_origin)], ...] = Field(
        default=(),
        max_length=256,
        description="Web origins whose pages may call ocpool.",
    )
    max_body_bytes: Bytes = Field(
        default=134_217_728,
        ge=1,
        le=4_294_967_296,
        description="Largest body of a routed request, past which it is refused with 413.",
    )
    max_buffered_bytes: Bytes = Field(
        default=268_435_456,
        ge=1,
        le=68_719_476_736,
        description="How much of all request bodies together is held before further ones stream without being read.",
    )
    loop: Literal["uvloop", "asyncio"] = Field(
        default="uvloop",
        description="Event loop of the daemon, where uvloop needs Linux or macOS.",
        json_schema_extra=RESTART,
    )
    drain_ms: Millis = Field(
        default=8000,
        ge=0,
        le=3_600_000,
        description="How long a stopping daemon waits for requests in flight before it aborts them.",
    )

    @model_validator(mode="after")
    def _guarded(self) -> Self:
        secrets = [token.get_secret_value() for token in self.tokens.values()]
        if self.token is not None:
            secrets.append(self.token.get_secret_value())
        if len(set(secrets)) < len(secrets):
            raise ValueError("listen.tokens: every token must differ from the others and from listen.token")
        if not (secrets or self.insecure or is_loopback(self.host)):
            raise ValueError(
                f"listen.host = {self.host!r}: is open to other machines, which needs listen.token,"
                " listen.tokens or an explicit listen.insecure = true",
            )
        return self
