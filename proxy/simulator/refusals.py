"""The gateway's refusals, word for word.

Two envelopes: the site's own is ``{"type": "error", "error": {"type", "message"}}``; what the inference service
relays from an endpoint is ``{"error": {"type", "message", "param", "code"}}``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import orjson

HTML = "text/html; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reply that serves nothing.

    Attributes:
        name: What the log calls it: the error's class or code.
        by: Who refuses. Messages of the service are prefixed when the site serves a legacy account.
        envelope: ``site``, ``service``, ``bare`` (the message alone, as text) or ``html``.
        retry_after_s: Whole seconds, when told.
        took_ms: How long an endpoint took to say so; None when none was asked.
    """

    status: int
    name: str
    message: str
    by: Literal["edge", "site", "service"] = "service"
    envelope: Literal["site", "service", "bare", "html"] = "site"
    type: str | None = None
    code: str | None = None
    metadata: Mapping[str, str] | None = None
    retry_after_s: int | None = None
    took_ms: float | None = None
    fields: tuple[tuple[str, str], ...] = field(default=())

    @property
    def content_type(self) -> str:
        """Media type of the body."""
        return {"html": HTML, "bare": "text/plain; charset=UTF-8"}.get(self.envelope, JSON)

    def body(self, prefix: str = "") -> bytes:
        """The body; ``prefix`` is put before a message of the service."""
        message = self.message if self.by != "service" else prefix + self.message
        if self.envelope in {"bare", "html"}:
            return message.encode()
        error: dict[str, object] = {"type": self.type or self.name, "message": message}
        if self.envelope == "service":
            error |= {"param": None, "code": self.code} if self.code else {}
            return orjson.dumps({"error": error})
        if self.metadata is not None:
            return orjson.dumps({"type": "error", "error": error, "metadata": dict(self.metadata)})
        return orjson.dumps({"type": "error", "error": error})


def edge_refused() -> Refusal:
    return Refusal(403, "cloudflare_1010", "error code: 1010", by="edge", envelope="bare")


def not_found(path: str) -> Refusal:
    page = f"<!DOCTYPE html><html><head><title>Not Found | OpenCode</title></head><body>404 {len(path)}</body></html>"
    return Refusal(404, "not_found", page, by="site", envelope="html")


def timed_out() -> Refusal:
    page = (
        "<!DOCTYPE html><html><head><title>opencode.ai | 524: A timeout occurred</title></head>"
        "<body><h1>A timeout occurred</h1><p>Error code 524</p></body></html>"
    )
    return Refusal(524, "cloudflare_524", page, by="edge", envelope="html")


def unauthorized(message: str) -> Refusal:
    return Refusal(401, "AuthError", message, by="site")


def no_session() -> Refusal:
    return Refusal(
        400,
        "MissingSessionID",
        "Request is missing x-opencode-session and cannot be routed efficiently. "
        "Please see https://opencode.ai/docs/go/#where-can-i-use-it",
    )


def unknown_model(model: str) -> Refusal:
    return Refusal(401, "ModelError", f"Model {model} is not supported", by="site")


def wrong_protocol() -> Refusal:
    return Refusal(400, "ModelProtocolUnsupported", "Model does not support this protocol.")


def invalid_request(why: str) -> Refusal:
    return Refusal(
        400,
        "invalid_request_error",
        f"Upstream request failed: [invalid_request_error] {why}",
        envelope="service",
        type="invalid_request_error",
        code="invalid_request_error",
        took_ms=180.0,
    )


def free_tier() -> Refusal:
    return Refusal(403, "FreeTierError", "OpenCode's free tier can only be used from within OpenCode", by="site")


def overloaded(status: int, took_ms: float, retry_after_s: int | None = None) -> Refusal:
    """An endpoint has too much to do: another id may well be served."""
    return Refusal(
        status,
        "overloaded",
        "Upstream request failed: [overloaded] the server is overloaded; retry shortly",
        envelope="service",
        type="server_error",
        code="overloaded",
        retry_after_s=retry_after_s,
        took_ms=took_ms,
    )


def unavailable() -> Refusal:
    """The whole service is away."""
    return Refusal(
        503,
        "api_error",
        "Inference routing is unavailable. Please retry later.",
        by="site",
        envelope="service",
        type="api_error",
        fields=(("cache-control", "no-store"),),
    )


def failed_inside(took_ms: float = 400.0) -> Refusal:
    """An error told with status 200."""
    return Refusal(
        200,
        "server_error",
        "Upstream request failed: [502] Upstream error from Nvidia: bad gateway",
        envelope="service",
        type="server_error",
        took_ms=took_ms,
    )
