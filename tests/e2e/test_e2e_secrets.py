"""What passes through stays in the pipe: no credential, session value, prompt or answer is written or shown anywhere."""

import asyncio
import json
import os
import stat
from pathlib import Path

from tests.fakes.client import Client, request
from tests.fakes.daemon import Daemon, environment
from tests.fakes.kept import house, until
from tests.fakes.upstream import END, ROUTED, SSE, Upstream, chunk, sized

GO = b"/zen/go/v1"
BODY = (
    b'{"model":"kimi-k3","stream":true,"user":"canary-user","prompt_cache_key":"canary-cache-key-0123456789",'
    b'"messages":[{"role":"user","content":"canary-prompt"}]}'
)
SECRETS = (
    (b"Authorization", b"Bearer sk-canary-bearer-0123456789"),
    (b"x-api-key", b"sk-canary-api-key-0123456789"),
    (b"x-goog-api-key", b"canary-goog-0123456789"),
    (b"Cookie", b"login=canary-cookie"),
    (b"x-opencode-org-id", b"canary-organisation"),
)


async def answering(exchange):
    """Answers and refusals in which everything is a canary."""
    await exchange.read()
    if b"limit" in exchange.target:
        body = b'{"type":"error","error":{"type":"GoUsageLimitError","message":"canary-refusal"}}'
        await exchange.send(sized(body, b"429 Too Many Requests", b"Set-Cookie: canary-set-cookie"))
    elif b"page" in exchange.target:
        await exchange.send(sized(b"<html>canary-page</html>", b"500 Internal Server Error"))
    elif b"broken" in exchange.target:
        await exchange.send(b"HTTP/1.1 200 canary-reason\r\nContent-Length: canary-length\r\n\r\n")
        exchange.wire.fin()
    elif b"error" in exchange.target:
        await exchange.send(SSE, chunk(b'data: {"error":{"message":"canary-in-stream","code":"canary-code"}}\n\n'), END)
    else:
        event = b'data: {"id":"canary-id","choices":[{"delta":{"content":"canary-answer"}}]}\n\n'
        done = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1}}\n\n'
        await exchange.send(SSE, chunk(event), chunk(done), END)


async def everything(daemon: Daemon) -> None:
    """Requests of every kind, good and bad."""
    for target in (ROUTED, GO + b"/limit/chat/completions", GO + b"/page/chat/completions", GO + b"/responses",
                   GO + b"/broken/chat/completions", GO + b"/error/chat/completions", b"/s/canary-named/v1/chat/completions",
                   b"/zen/v1/models/gemini-4-argon:streamGenerateContent?alt=sse&key=canary-query-0123456789"):  # fmt: skip
        for turn in range(2):
            for session in (b"canary-session-0123456789", b"ses_ca9a4112345604canaryABCDEF", None):
                async with await Client.open(daemon.host, daemon.port) as client:
                    fields = [
                        *SECRETS,
                        (b"User-Agent", b"secrets/1"),
                        (b"x-parent-session-id", b"canary-parent-0123456789"),
                    ]
                    await client.send(request(target, BODY, fields, session=session))
                    reply = await client.head()
                    if turn == 0 and reply.status == 200:
                        await client.rest(reply)
    for bad in (
        b"GET /canary-bad\x00-line HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST http://canary-absolute/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
        b"GET /t/canary-token/-/status HTTP/1.1\r\nHost: canary-host.example\r\n\r\n",
        b"GET /-/repin?conversation=canary-label HTTP/1.1\r\nHost: localhost\r\nOrigin: https://canary-origin\r\n\r\n",
        b"POST " + ROUTED + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: canary\r\nAuthorization: canary\r\n\r\n",
        b"POST " + ROUTED + b" HTTP/1.1\r\nHost: localhost\r\nCanary\r\nContent-Length: 0\r\n\r\n",
    ):
        async with await Client.open(daemon.host, daemon.port) as client:
            await client.send(bad)
            await client.head()


async def shown(daemon: Daemon) -> dict[str, bytes]:
    """Everything that the daemon wrote or tells, by where it is."""
    found = {str(path): path.read_bytes() for path in daemon.folder.rglob("*") if path.is_file()}
    found["cmdline"] = Path(f"/proc/{daemon.process.pid}/cmdline").read_bytes()
    for page in (b"/-/status", b"/-/metrics", b"/-/", b"/-/health", b"/-/ready"):
        async with await Client.open(daemon.host, daemon.port) as client:
            found[page.decode()] = (await client.ask(request(page, b"", method=b"GET"), "GET")).data
    return found


async def test_no_secret_is_written_or_shown(tmp_path):
    """At log level debug, through answers, refusals, broken answers and bad requests."""
    upstream = await Upstream().start()
    upstream.stray_script = answering
    env = environment(tmp_path, OPENCODE_API_KEY="sk-canary-environment-0123456789")
    settings = {
        "log__level": "debug", "probe__enabled": True, "probe__min_interval_ms": 10, "pool__refill_delay_ms": 10,
        "pool__refresh_interval_ms": 500,
    }  # fmt: skip
    daemon = await Daemon.start(tmp_path, "--upstream", upstream.url, env=env, **settings)
    try:
        await everything(daemon)
        await until(lambda: any(b"ocpool/" in (e.head.one(b"user-agent") or b"") for e in upstream.strays))
        await asyncio.sleep(1)
        await everything(daemon)
        await asyncio.sleep(1.5)
        found = await shown(daemon)
    finally:
        await daemon.stop()
        await upstream.stop()
    found |= {f"{path} at the end": path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {Path(name.partition(" at")[0]).name for name in found} >= {"stdout", "stderr", "events.jsonl", "state.json"}
    leaks = {
        name: data[max(0, at - 200) : at + 60]
        for name, data in found.items()
        if (at := data.lower().find(b"canary")) >= 0
    }
    assert not leaks
    sent = {(exchange.head.one(b"x-opencode-session") or b"-").decode() for exchange in upstream.strays}
    public = {name: data for name, data in found.items() if "state.json" not in name}
    assert not [
        (name, value) for name, data in public.items() for value in sent if len(value) > 8 and value.encode() in data
    ]


async def test_files_are_the_owners_alone_after_rewrites_and_with_umask_000(tmp_path):
    """0600, and 0700 for folders that ocpool makes."""
    before = os.umask(0)
    try:
        async with house(
            tmp_path, state__events_path=tmp_path / "kept" / "events.jsonl", log__path=tmp_path / "kept" / "log"
        ) as daemon:
            for _ in range(2):
                await daemon.talks_on()
                await daemon.written()
                modes = await settled(daemon)
            daemon.state.chmod(0o666)
            inode = daemon.state.stat().st_ino
            await daemon.talks_on()
            await until(lambda: daemon.state.stat().st_ino != inode)
            modes |= await settled(daemon)
    finally:
        os.umask(before)
    names = {path.name for path in modes}
    assert names >= {"kept", "run", "state.json", "state.json.key", "state.json.guard", "events.jsonl"}
    wrong = {str(path): oct(mode) for path, mode in modes.items() if mode & 0o077}
    assert not wrong


async def settled(daemon) -> dict[Path, int]:
    await asyncio.sleep(1)
    paths = [daemon.state.parent, *daemon.state.parent.rglob("*")]
    return {path: stat.S_IMODE(path.stat().st_mode) for path in paths if path.exists()}


async def test_status_and_events_show_ids_as_digests(tmp_path):
    """Eight hex, the same in both."""
    async with house(tmp_path) as daemon:
        sent_on = await daemon.say("steady-conversation")
        assert await daemon.say("steady-conversation") == sent_on
        event = await daemon.event("request")
        text = json.dumps(await daemon.status())
        assert str(event["session"]) in text
        assert sent_on not in text
        assert len(str(event["session"])) == 8
