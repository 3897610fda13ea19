"""Rule 20: our own errors are ours, visible and parseable: JSON, a code per cause, one line with the cause, no secret."""

import asyncio
import contextlib
import json
import os
import socket
import ssl
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.client import Reply, chunk, request
from tests.fakes.daemon import environment
from tests.fakes.relay import Relay, Relays
from tests.fakes.upstream import PLAIN, ROUTED, SSE, UNROUTED, Upstream, sized

CANARIES = {
    name: f"canary-{name}-7d1f9a2b4c" for name in ("session", "bearer", "query", "cookie", "prompt", "answer", "token")
}


class Elsewhere(Upstream):
    """An upstream whose URL says something else than where it is."""

    said = ""

    @property
    def url(self) -> str:
        return self.said


def code_of(reply: Reply) -> str:
    """Check the shape; returns the code."""
    assert reply.one(b"content-type") == b"application/json"
    assert reply.complete
    error = json.loads(reply.data)["error"]
    assert set(error) >= {"message", "type", "code"}
    assert len(error["message"]) > 10
    return str(error["code"])


async def _elsewhere(relays: Relays, said: str, **settings: object) -> Relay:
    upstream = Elsewhere()
    await upstream.start()
    upstream.said = said
    relay = await relays.make(upstream=upstream, **settings)
    relay.needs_daemon()
    return relay


def unused_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextlib.asynccontextmanager
async def _answering(tls: ssl.SSLContext | None) -> AsyncIterator[int]:
    """A server that answers whatever is said to it with a 400."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(sized(b"", b"400 Bad Request"))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def _cause(relay: Relay, path: bytes, *statuses: int) -> str:
    reply = await relay.ask(path, fields=[(b"Authorization", b"Bearer canary-key")], session=b"canary-session-id")
    assert reply.status in statuses
    assert b"canary" not in reply.data
    assert "canary" not in relay.daemon.log()
    return code_of(reply)


@pytest.mark.parametrize("path", [ROUTED, PLAIN])
async def test_every_cause_has_a_code_of_its_own(relays: Relays, path: bytes):
    codes: dict[str, str] = {}
    refused = await _elsewhere(relays, f"http://127.0.0.1:{unused_port()}")
    codes["refused"] = await _cause(refused, path, 502)
    codes["dns"] = await _cause(await _elsewhere(relays, "http://no-such-name.invalid"), path, 502)
    trusting = {"upstream__ca_file": relays.authority.file}
    async with _answering(relays.authority.server("elsewhere.example")) as port:
        codes["name"] = await _cause(await _elsewhere(relays, f"https://localhost:{port}", **trusting), path, 502)
    async with _answering(None) as port:
        codes["tls"] = await _cause(await _elsewhere(relays, f"https://localhost:{port}", **trusting), path, 502)
    silent = await relays.make()
    codes["closed"] = await _cause_of(silent, path, "fin")
    codes["garbage"] = await _cause_of(silent, path, b"SSH-2.0-x\r\n\r\n", "fin")
    assert codes["name"] == codes["tls"]
    assert len(set(codes.values())) == 5, codes


async def _cause_of(relay: Relay, path: bytes, *script: object) -> str:
    reply = await relay.ask(relay.case(*script).on(path))
    assert reply.status == 502
    return code_of(reply)


async def test_a_certificate_that_nobody_trusts_is_refused(relays: Relays):
    upstream = Elsewhere(relays.authority.server("localhost"))
    await upstream.start()
    upstream.said = f"https://localhost:{upstream.port}"
    relay = await relays.make(upstream=upstream)
    relay.needs_daemon()
    assert "tls" in await _cause(relay, ROUTED, 502)


async def test_a_connection_that_is_not_made_in_time_is_a_504(relays: Relays):
    """A listener whose backlog is full answers no SYN, as a black hole does."""
    with contextlib.ExitStack() as stack:
        hole = stack.enter_context(socket.socket())
        hole.bind(("127.0.0.1", 0))
        hole.listen(0)
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(hole.getsockname())
        said = f"http://127.0.0.1:{hole.getsockname()[1]}"
        relay = await _elsewhere(relays, said, upstream__connect_timeout_ms=500)
        assert "timeout" in await _cause(relay, ROUTED, 504)


async def test_each_failure_leaves_one_line_with_its_cause(relays: Relays):
    relay = await _elsewhere(relays, f"http://127.0.0.1:{unused_port()}")
    before = len(relay.daemon.log().splitlines())
    await _cause(relay, ROUTED, 502)
    event = await relay.daemon.event("request")
    for _ in range(60):  # the log is written in its own time
        if "connect" in relay.daemon.log():
            break
        await asyncio.sleep(0.1)
    await asyncio.sleep(0.3)
    lines = [line for line in relay.daemon.log().splitlines()[before:] if "connect" in line.lower()]
    assert len(lines) == 1, relay.daemon.log()
    assert "upstream_connect_failed" in json.dumps(event)


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_an_error_to_a_head_request_has_no_body(relays: Relays, method: str):
    relay = await _elsewhere(relays, f"http://127.0.0.1:{unused_port()}")
    async with await relay.connect() as client:
        for _ in range(2):
            reply = await client.ask(request(PLAIN, method=method.encode(), framing="none"), method)
            assert reply.status == 502
            assert (reply.raw == b"") == (method == "HEAD")


async def test_no_secret_is_written_anywhere(relays: Relays, tmp_path: Path):
    relay = await relays.make(
        env=environment(tmp_path, OCPOOL_LISTEN__TOKEN=CANARIES["token"]), log__level="debug", probe__enabled=True
    )
    relay.needs_daemon()
    values = {name: value.encode() for name, value in CANARIES.items()}
    fields = [
        (b"Authorization", b"Bearer " + values["bearer"]),
        (b"Cookie", values["cookie"]),
        (b"x-ocpool-token", values["token"]),
    ]
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"' + values["prompt"] + b'"}]}'
    answer = b'data: {"choices":[{"delta":{"content":"' + values["answer"] + b'"}}]}\n\n'
    scripts: list[tuple[object, ...]] = [
        (SSE, chunk(answer), b"0\r\n\r\n"),
        (SSE, chunk(answer), "rst"),
        ("rst",),
        (b"garbage " + values["answer"] + b"\r\n\r\n",),
        (sized(values["answer"], b"401 No"),),
        (sized(values["answer"], b"429 Slow"),),
        (sized(values["answer"], b"400 Bad"),),
        (sized(b"", b"302 Found", b"Location: http://x/" + values["answer"]),),
    ]
    for path in (ROUTED, UNROUTED):
        for script in scripts:
            target = relay.case(*script).on(path) + b"&api_key=" + values["query"]
            async with await relay.connect() as client:
                await client.send(request(target, body, fields, session=values["session"]))
                await client.rest(await client.head())
        for raw in (b"GARBAGE " + values["query"] + b"\r\n\r\n", request(path, b"", [(b"X Y", values["bearer"])])):
            async with await relay.connect() as client:
                await client.send(raw)
                refusal = await client.reply()
                assert not any(value in refusal.raw + refusal.head.raw for value in values.values())
        wrong = await relay.ask(
            path, fields=[(b"x-ocpool-token", values["bearer"]), (b"Authorization", values["bearer"])]
        )
        assert wrong.status == 401
        assert values["bearer"] not in wrong.data
    for page in (b"/-/status", b"/-/metrics", b"/-/health", b"/-/ready"):
        reply = await relay.ask(page, "GET", framing="none", fields=fields[2:])
        assert not [name for name, value in values.items() if value in reply.data], page
    await relay.daemon.event("request")
    process = Path(f"/proc/{relay.daemon.process.pid}/cmdline").read_bytes()
    assert not [name for name, value in values.items() if value in process]
    await relay.daemon.stop()
    for file in relay.daemon.folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not [name for name, value in values.items() if value in content], file
            mode = stat.S_IMODE(file.stat().st_mode)
            assert file.name in ("stdout", "stderr") or mode == 0o600, (file, oct(mode))


async def test_files_are_private_whatever_the_umask_also_after_a_rewrite(relays: Relays):
    before = os.umask(0)
    try:
        relay = await relays.make(state__path=None, state__events_path=None)
    finally:
        os.umask(before)
    relay.needs_daemon()
    for number in range(4):
        await relay.ask(relay.case(sized(b"ok")).on(ROUTED), session=b"a-conversation-%d" % (number % 2))
    await relay.daemon.stop()
    state = relay.daemon.folder / "xdg_state_home"
    seen = list(state.rglob("*"))
    assert any(path.is_file() for path in seen)
    for path in seen:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), (path, oct(mode))
