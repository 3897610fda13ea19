"""Editors, their extensions, and other programs with a window or a server of their own."""

from typing import Final

from proxy.cli.clients.entry import Client, Snippet

_FORM = """API provider:  OpenAI Compatible
Base URL:      %NAMED%
API key:       your OpenCode key
Model:         glm-5.3
"""
_ONE_NAME = (
    "All tasks share the name in the base URL, so they are one conversation to ocpool and share one route and one "
    "cache; change it for a task that should have its own."
)

APPS: Final = (
    Client(
        "cline",
        "Cline",
        (
            Snippet("Settings, API Configuration", "text", _FORM),
            Snippet(
                "the shell, for the command line version",
                "sh",
                'cline auth -p openai -b %NAMED% -k "$OPENCODE_API_KEY" -m glm-5.3\n',
            ),
        ),
        "Nothing.",
        _ONE_NAME,
        "cline (npm) 3.0.65, the command line version",
    ),
    Client(
        "roo",
        "Roo Code, Zoo Code",
        (Snippet("Settings, Providers", "text", _FORM),),
        "Nothing.",
        _ONE_NAME + " A configuration profile for each task saves the typing.",
    ),
    Client(
        "continue",
        "Continue",
        (
            Snippet(
                "~/.continue/config.yaml",
                "yaml",
                """name: ocpool
version: 1.0.0
schema: v1
models:
  - name: GLM-5.3
    provider: openai
    model: glm-5.3
    apiBase: %NAMED%
    apiKey: ${{ secrets.OPENCODE_API_KEY }}
    roles: [chat, edit, apply]
""",
            ),
        ),
        "Nothing.",
        _ONE_NAME + " A header in requestOptions is static and no better.",
        "@continuedev/cli 1.5.47 (the same file as the extensions')",
    ),
    Client(
        "zed",
        "Zed",
        (
            Snippet(
                "settings.json; the key in OCPOOL_API_KEY or in the agent panel's settings",
                "json",
                """{
  "language_models": {
    "openai_compatible": {
      "ocpool": {
        "api_url": "%GO%",
        "available_models": [
          {
            "name": "glm-5.3",
            "max_tokens": 200000,
            "capabilities": { "tools": true, "images": false, "parallel_tool_calls": false, "prompt_cache_key": true }
          }
        ]
      }
    }
  }
}""",
            ),
        ),
        "prompt_cache_key in the body, if the capability is on; Zed's own OpenCode provider: x-opencode-session.",
        "prompt_cache_key is believed as an id that conversations may share. Where the OpenCode provider lets you set "
        "its URL, that is the better choice.",
    ),
    Client(
        "open-webui",
        "Open WebUI",
        (
            Snippet(
                "the server's environment",
                "sh",
                """OPENAI_API_BASE_URL=%GO%
OPENAI_API_KEY=your OpenCode key
ENABLE_FORWARD_USER_INFO_HEADERS=true
""",
            ),
            Snippet(
                "or, in place of the last line: Admin Settings, Connections, the connection's headers",
                "json",
                """{ "x-session-id": "{{CHAT_ID}}", "x-task": "{{TASK}}" }""",
            ),
        ),
        "X-OpenWebUI-Chat-Id with the switch, or what the connection's headers say.",
        "Header templates need version 0.9.7 or newer. The switch sends your users' names to the gateway as well; the "
        "headers do not. From a container, 127.0.0.1 is the container: use the host's name there, and add it to "
        "listen.allowed_hosts.",
    ),
)
