"""Coding agents on the command line."""

from typing import Final

from proxy.cli.clients.entry import Client, Snippet

_NAMED = "Base URLs with /s/<name>/ name the conversation: take another name for another task."

AGENTS: Final = (
    Client(
        "pi",
        "pi",
        (
            Snippet(
                "~/.pi/agent/models.json (or $PI_CODING_AGENT_DIR/models.json)",
                "json",
                """{
  "providers": {
    "opencode-go": { "baseUrl": "%GO%" },
    "ocpool": {
      "baseUrl": "%GO%",
      "api": "openai-completions",
      "apiKey": "!printenv OPENCODE_API_KEY",
      "models": [
        { "id": "glm-5.3", "compat": { "sendSessionAffinityHeaders": true } }
      ]
    }
  }
}""",
            ),
        ),
        "The built-in opencode-go: x-opencode-session (older versions: nothing). A provider of your own: session_id "
        "and x-session-affinity, if the model has compat.sendSessionAffinityHeaders.",
        "Either entry is enough. The compat key has to stand at each model. A provider's baseUrl holds for all its "
        "models, so those of other protocols go there too. Compaction names no conversation. Do not load "
        "pi-opencode-session-pool at the same time.",
        "pi-coding-agent 0.74.2 (a custom provider) and 1.6.0 (a custom and the built-in one)",
    ),
    Client(
        "opencode",
        "OpenCode",
        (
            Snippet(
                "opencode.json in the project, or ~/.config/opencode/opencode.json",
                "json",
                """{
  "$schema": "https://opencode.ai/config.json",
  "provider": {
    "opencode-go": { "options": { "baseURL": "%GO%" } },
    "opencode": { "options": { "baseURL": "%ZEN%" } },
    "ocpool": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "ocpool",
      "options": { "baseURL": "%GO%", "apiKey": "{env:OPENCODE_API_KEY}" },
      "models": { "glm-5.3": { "name": "GLM-5.3" } }
    }
  }
}""",
            ),
        ),
        "x-opencode-session from providers whose id begins with opencode, x-session-affinity and X-Session-Id from any "
        "other; sub-agents an id of their own and the parent's.",
        "Nothing else to do; the first two entries reroute the built-in providers, the third is one of your own. "
        "With a Console sign-in the base URL is the Console's: set it in the provider's options.",
        "opencode-ai 1.18.33, its built-in provider and one of your own",
    ),
    Client(
        "kilo",
        "Kilo CLI",
        (
            Snippet(
                "~/.config/kilo/kilo.json",
                "json",
                """{
  "provider": {
    "ocpool": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "ocpool",
      "options": { "baseURL": "%GO%", "apiKey": "{env:OPENCODE_API_KEY}" },
      "models": { "glm-5.3": { "name": "GLM-5.3" } }
    }
  }
}""",
            ),
        ),
        "x-session-affinity and X-Session-Id, as OpenCode; titles as title-ses_....",
        "In a project's kilo.json, Kilo takes no {env:...}: leave apiKey out there and sign in with `kilo auth login`.",
        "@kilocode/cli 7.8.1",
    ),
    Client(
        "codex",
        "Codex",
        (
            Snippet(
                "~/.codex/config.toml",
                "toml",
                """model = "gpt-6-luna"
model_provider = "ocpool"

[model_providers.ocpool]
name = "ocpool"
base_url = "%GO%"
env_key = "OPENCODE_API_KEY"
wire_api = "responses"
""",
            ),
        ),
        "thread-id, session-id and x-codex-turn-metadata; the body's prompt_cache_key.",
        "Codex speaks the responses API alone, and only models of that protocol work. By default its requests pass "
        "with its own session fields, and the gateway may not know the newer ones (400 MissingSessionID). With "
        'routing.apis = ["completions", "responses"] they get routes and the field that it wants; so it was run.',
        "@openai/codex 0.171.0, with routing.apis as above",
    ),
    Client(
        "aider",
        "aider",
        (
            Snippet(
                ".aider.conf.yml in the project or the home folder; the key in OPENAI_API_KEY",
                "yaml",
                """openai-api-base: %NAMED%
model: openai/glm-5.3
weak-model: openai/glm-5.3
show-model-warnings: false
""",
            ),
        ),
        "Nothing.",
        _NAMED
        + " One file a project makes one conversation a project; the summariser and the commit message share it.",
        "aider-chat 0.86.2",
    ),
    Client(
        "crush",
        "Crush",
        (
            Snippet(
                "crush.json in the project, or ~/.config/crush/crush.json",
                "json",
                """{
  "$schema": "https://charm.land/crush.json",
  "providers": {
    "ocpool": {
      "type": "openai-compat",
      "base_url": "%GO%",
      "api_key": "$OPENCODE_API_KEY",
      "models": [{ "id": "glm-5.3", "name": "GLM-5.3", "context_window": 200000, "default_max_tokens": 16384 }]
    }
  }
}""",
            ),
        ),
        "x-session-id and x-session-affinity; sub-agents an id of their own.",
        "Nothing else to do.",
    ),
    Client(
        "goose",
        "Goose",
        (
            Snippet(
                "~/.config/goose/custom_providers/ocpool.json, then `goose configure`",
                "json",
                """{
  "name": "ocpool",
  "engine": "openai",
  "display_name": "ocpool",
  "api_key_env": "OPENCODE_API_KEY",
  "base_url": "%GO%/chat/completions",
  "models": [{ "name": "glm-5.3", "context_limit": 200000 }],
  "supports_streaming": true
}""",
            ),
        ),
        "agent-session-id (earlier goose-session-id).",
        "Nothing else to do. Its probes for models deliberately name no session.",
    ),
    Client(
        "claude-code-router",
        "Claude Code through claude-code-router",
        (
            Snippet(
                "~/.claude-code-router/config.json",
                "json",
                """{
  "Providers": [
    {
      "name": "ocpool",
      "api_base_url": "%GO%/chat/completions",
      "api_key": "$OPENCODE_API_KEY",
      "models": ["glm-5.3"]
    }
  ],
  "Router": { "default": "ocpool,glm-5.3" }
}""",
            ),
        ),
        "Claude Code: x-claude-code-session-id, and x-claude-code-agent-id on sub-agents. The router passes neither on "
        "by default and stamps a fresh x-client-request-id on each request, which is never taken for a conversation.",
        "Put /s/<name>/ into the base URL, or let the router pass x-claude-code-session-id. "
        "ANTHROPIC_CUSTOM_HEADERS='x-session-id: <id>' names a launch, not a conversation.",
        "@musistudio/claude-code-router 2.0.0 with @anthropic-ai/claude-code 2.1.197",
    ),
    Client(
        "claude-code",
        "Claude Code, without a router",
        (
            Snippet(
                "the environment, or env in ~/.claude/settings.json",
                "sh",
                """export ANTHROPIC_BASE_URL=%ROOT%/zen/go
export ANTHROPIC_API_KEY=$OPENCODE_API_KEY
export ANTHROPIC_MODEL=claude-haiku-5-5
""",
            ),
        ),
        "x-claude-code-session-id, and x-claude-code-agent-id on sub-agents.",
        "It speaks the messages API: its requests pass with its own session fields. routing.apis can include "
        "messages. Only models of that protocol work. The key goes into ANTHROPIC_API_KEY, because what is in "
        "ANTHROPIC_AUTH_TOKEN is sent as a bearer token, which that API refuses.",
        "@anthropic-ai/claude-code 2.1.197, with messages in routing.apis",
    ),
)
