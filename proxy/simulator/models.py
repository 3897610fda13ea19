"""The models of both trees, and the one protocol that each speaks."""

from typing import Final

COMPLETIONS: Final = "completions"
RESPONSES: Final = "responses"
MESSAGES: Final = "messages"
GOOGLE: Final = "google"

_GO: Final = {
    COMPLETIONS: (
        "glm-5.3 glm-5.3-flash kimi-k3 kimi-k3.1-pro kimi-k2.7-code deepseek-v4.1-flash deepseek-v4-flash "
        "deepseek-v4-pro mimo-v2.5 mimo-v2.6-flash mimo-v2.5-pro mimo-v2.6-pro longcat-2.0 hy3 hy4 hy4-preview "
        "minimax-m3.1-flash step-5-preview beam-free hy4-flash-free iceman-contributor-free longcat-2.5-free"
    ),
    MESSAGES: "minimax-m3 qwen3.8-max qwen3.8-flash qwen3.7-plus qwen4-max claude-haiku-5-5",
    GOOGLE: "gemini-4-argon",
    RESPONSES: "gpt-6-luna gpt-5.6-luna grok-4.7 muse-spark-1.2-contributor muse-spark-1.3-contributor",
}
_ZEN: Final = {
    COMPLETIONS: (
        "glm-5.3 glm-5.3-flash kimi-k3 kimi-k2.7-code deepseek-v4.1-flash deepseek-v4-pro minimax-m3 qwen3.8-max "
        "big-pickle beam-free"
    ),
    MESSAGES: "claude-opus-5-5 claude-sonnet-5-5 claude-haiku-5-5 claude-fable-5-2 qwen3.6-plus",
    GOOGLE: "gemini-4-argon gemini-3.8-flash",
    RESPONSES: "gpt-6.2-astra gpt-6.2-sol gpt-6-luna gpt-5.3-codex grok-4.7",
}

PROTOCOLS: Final[dict[str, dict[str, str]]] = {
    provider: {model: protocol for protocol, names in table.items() for model in names.split()}
    for provider, table in (("opencode-go", _GO), ("opencode", _ZEN))
}
ALIASES: Final = {"opencode-go-default": "deepseek-v4.1-flash"}


def resolve(model: str) -> str:
    """The public name behind an alias."""
    return ALIASES.get(model, model)


def is_free(model: str) -> bool:
    """Free models want a session on either tree, and OpenCode itself as the client."""
    return model.endswith("-free") or model == "big-pickle"
