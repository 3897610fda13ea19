"""Every client of the table, by its row's name."""

from tests.traces.clients import chats, claude, editor, opencode, terminal
from tests.traces.clients.base import Client

CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        opencode.OpenCodeGo(),
        opencode.OpenCodeCustom(),
        opencode.Kilo(),
        terminal.Pi(),
        terminal.PiGo(),
        claude.Codex(),
        claude.ClaudeCode(),
        claude.ClaudeRouter(),
        claude.ClaudeLiteLLM(),
        editor.Cline(),
        editor.Roo(),
        editor.Continue(),
        editor.Aider(),
        editor.Zed(),
        terminal.Goose(),
        terminal.Crush(),
        terminal.Hermes(),
        terminal.KimiCli(),
        terminal.Jcode(),
        terminal.Tau(),
        terminal.QwenCode(),
        chats.LiteLLM(),
        chats.OpenWebUI(),
        chats.LangChain(),
        chats.OpenAISDK(),
        chats.WorkBuddy(),
        chats.Curl(),
    )
}
