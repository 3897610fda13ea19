"""The gateway's paths: two trees, of which the older one is short and the newer one names the protocol."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from proxy.simulator.models import COMPLETIONS, GOOGLE, MESSAGES, RESPONSES


@dataclass(frozen=True, slots=True)
class Route:
    """What a path stands for.

    Attributes:
        api: A protocol of `proxy.simulator.models`, or ``systemone``, ``embeddings``, ``decisions``, or for GET
            ``models`` and ``usage``.
        model: Where the path names it (Google's).
        stream: Where the path decides it (Google's).
    """

    tree: Literal["zen", "inference"]
    provider: str
    api: str
    model: str | None = None
    stream: bool | None = None

    @property
    def reads(self) -> bool:
        """Asked with GET, and no inference."""
        return self.api in {"models", "usage"}


_ZEN: Final = {
    "v1/chat/completions": COMPLETIONS,
    "v1/responses": RESPONSES,
    "v1/messages": MESSAGES,
    "v1/systemone": "systemone",
    "v1/models": "models",
}
_INFERENCE: Final = {
    "openai/v1/chat/completions": COMPLETIONS,
    "openai/v1/responses": RESPONSES,
    "openai/v1/embeddings": "embeddings",
    "openai/v1/decisions": "decisions",
    "anthropic/v1/messages": MESSAGES,
    "systemone/v1/systemone": "systemone",
    "v1/models": "models",
}
_GOOGLE: Final = {
    ("zen", "opencode"): re.compile(r"v1/models/([^/:]+):(generateContent|streamGenerateContent)"),
    ("inference", "opencode"): re.compile(r"google/v1beta/models/([^/:]+):(generateContent|streamGenerateContent)"),
    ("inference", "opencode-go"): re.compile(r"google/v1beta/models/([^/:]+):(generateContent|streamGenerateContent)"),
}


def resolve(path: str) -> Route | None:
    """The route of a path without its query; None is the site's 404."""
    tree: Literal["zen", "inference"]
    if path.startswith("/zen/"):
        tree, rest = "zen", path.removeprefix("/zen/")
    elif path.startswith("/inference/"):
        tree, rest = "inference", path.removeprefix("/inference/")
    else:
        return None
    provider = "opencode-go" if rest.startswith("go/") else "opencode"
    rest = rest.removeprefix("go/")
    if provider == "opencode-go" and rest == "v1/usage":
        return Route(tree, provider, "usage")
    api = (_ZEN if tree == "zen" else _INFERENCE).get(rest)
    if api is not None:
        return Route(tree, provider, api)
    pattern = _GOOGLE.get((tree, provider))
    found = pattern.fullmatch(rest) if pattern else None
    if found is None:
        return None
    return Route(tree, provider, GOOGLE, found[1], found[2] == "streamGenerateContent")
