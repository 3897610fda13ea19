"""A conversation of pi's goes on where the extension had it: on its own id, with its cache, through a running daemon."""

import asyncio
import json
import time
from pathlib import Path

import aiohttp
import pytest

from proxy.cli.commands import run
from tests.fakes.house import GO, House, street

MODEL = "deepseek-v4.1-flash"
SESSION = "01a1b54b-7000-7000-8000-000000000001"
ROUTED = "7d1a90c4-1111-4222-8333-444455556666"


async def ask(at: House, key: str) -> str:
    """One turn of that session with this key; the id that the gateway saw."""
    body = {"model": MODEL, "stream": True, "max_tokens": 4, "messages": [{"role": "user", "content": "hi"}]}
    headers = {"Authorization": f"Bearer {key}", "User-Agent": "pi/1", "x-opencode-session": SESSION}
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{at.url}{GO}/chat/completions", json=body, headers=headers) as answer:
            await answer.read()
            assert answer.status == 200
    return at.live[-1].session or ""


async def test_the_first_scope_that_sends_the_session_has_its_route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    now = int(time.time() * 1000)
    theirs = tmp_path / "theirs.json"
    binding = {
        "routedId": ROUTED,
        "provider": "opencode-go",
        "model": MODEL,
        "boundAt": now,
        "lastSeenAt": now,
        "failures": 0,
    }
    theirs.write_text(
        json.dumps({"version": 1, "entries": [], "bindings": {f"{SESSION}::opencode-go::{MODEL}": binding}})
    )
    state = tmp_path / "state.json"
    async with street(tmp_path, scale=1.0, settings=["probe.enabled=false"]) as at:
        assert await asyncio.to_thread(run, ["import", str(theirs), "--set", f"state.path={state}"]) == 0
        await at.until(lambda: len(at.daemon.routes.parts.bindings) == 1)
        assert await ask(at, "sk-one") == ROUTED
        assert await ask(at, "sk-one") == ROUTED
        assert await ask(at, "sk-two") not in {ROUTED, SESSION}
        await at.until(lambda: at.decisions("inherit") != [])
    assert SESSION not in state.read_text()
    [(key, kept)] = json.loads(state.read_text())["bindings"].items()
    assert kept["routedId"] == ROUTED
    assert not key.startswith("imported-")
