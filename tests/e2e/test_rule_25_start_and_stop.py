"""Rule 25: SIGTERM drains, then aborts; a second instance leaves at once; an upgrade gets 426; exit codes say why."""

import asyncio
import json
import signal
import socket
import time

import pytest

from tests.fakes.client import END, chunk, request
from tests.fakes.daemon import Daemon
from tests.fakes.relay import Relay, Relays
from tests.fakes.upstream import PLAIN, ROUTED, SSE, UNROUTED, Exchange, sized

EVENT = chunk(b"data: 1\n\n")
LOOPS = pytest.mark.parametrize("loop", ["uvloop", "asyncio"])


async def _endless(exchange: Exchange) -> None:
    await exchange.read()
    await exchange.send(SSE)
    while True:
        await exchange.send(EVENT)
        await asyncio.sleep(0.05)


async def _streaming(relay: Relay, path: bytes, *script: object):
    """A stream under way, over a TCP connection of its own."""
    case = relay.case(*script) if script else relay.case(_endless)
    client = await relay.connect()
    await client.send(request(case.on(path)))
    return client, await client.head()


@pytest.mark.parametrize(
    ("loop", "path", "number"),
    [
        ("uvloop", ROUTED, signal.SIGTERM),
        ("uvloop", UNROUTED, signal.SIGINT),
        ("asyncio", UNROUTED, signal.SIGTERM),
        ("asyncio", ROUTED, signal.SIGINT),
    ],
)
async def test_running_streams_finish_new_work_is_refused_and_the_exit_is_clean(
    relays: Relays, loop: str, path: bytes, number: signal.Signals
):
    relay = await relays.make(loop, listen__drain_ms=8000)
    relay.needs_daemon()
    client, head = await _streaming(relay, path, SSE, EVENT, 1.2, EVENT, END)
    relay.daemon.tell(number)
    await asyncio.sleep(0.3)
    with pytest.raises(ConnectionError):
        await relay.ask(path)
    reply = await client.rest(head)
    assert (reply.complete, reply.raw) == (True, EVENT * 2 + END)
    finished = time.perf_counter()
    assert await relay.daemon.exit() == 0
    assert time.perf_counter() - finished < 2
    client.wire.cut()


@LOOPS
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_a_stream_longer_than_the_grace_is_aborted_visibly(relays: Relays, loop: str, path: bytes):
    relay = await relays.make(loop, listen__drain_ms=700)
    relay.needs_daemon()
    client, head = await _streaming(relay, path)
    told = time.perf_counter()
    relay.daemon.tell(signal.SIGTERM)
    reply = await client.rest(head)
    assert not reply.complete
    assert END not in reply.raw
    assert 0.5 < time.perf_counter() - told < 2.7
    assert await relay.daemon.exit() == 0
    assert time.perf_counter() - told < 3
    assert (relay.daemon.folder / "state.json").exists() or True
    client.wire.cut()


@LOOPS
async def test_the_grace_also_covers_a_request_that_waits_for_its_head_and_an_upload(relays: Relays, loop: str):
    relay = await relays.make(loop, listen__drain_ms=8000)
    relay.needs_daemon()
    waiting, upload = relay.case(0.8, sized(b"late")), relay.case(sized(b"uploaded"))
    async with await relay.connect() as one, await relay.connect() as two:
        await one.send(request(waiting.on(ROUTED)))
        await two.send(request(upload.on(UNROUTED), framing="none", fields=[(b"Transfer-Encoding", b"chunked")]))
        await two.send(chunk(b"first half, "))
        await waiting.seen()
        await upload.seen()
        relay.daemon.tell(signal.SIGTERM)
        await asyncio.sleep(0.3)
        await two.send(chunk(b"second half") + END)
        assert (await two.reply()).data == b"uploaded"
        assert (await one.reply()).data == b"late"
    assert upload.requests[0].data == b"first half, second half"
    assert await relay.daemon.exit() == 0


@LOOPS
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_the_grace(relays: Relays, loop: str, second: signal.Signals):
    relay = await relays.make(loop, listen__drain_ms=60_000)
    relay.needs_daemon()
    client, head = await _streaming(relay, ROUTED)
    relay.daemon.tell(signal.SIGTERM)
    await asyncio.sleep(0.4)
    assert relay.daemon.process.poll() is None
    relay.daemon.tell(second)
    told = time.perf_counter()
    await relay.daemon.exit()
    assert time.perf_counter() - told < 2
    assert not (await client.rest(head)).complete


@LOOPS
async def test_a_second_signal_while_it_stops_anyway_loses_nothing(relays: Relays, loop: str):
    relay = await relays.make(loop)
    relay.needs_daemon()
    for _ in range(3):
        await relay.ask(relay.case(sized(b"ok")).on(ROUTED), session=b"a-conversation-to-keep")
    for _ in range(8):
        if relay.daemon.process.poll() is None:
            relay.daemon.tell(signal.SIGTERM)
        await asyncio.sleep(0.02)
    assert await relay.daemon.exit() == 0
    assert json.loads((relay.daemon.folder / "state.json").read_text())["bindings"]
    assert relay.daemon.events()[-1]["event"] == "stopped"


@LOOPS
async def test_an_idle_client_connection_does_not_hold_up_the_exit(relays: Relays, loop: str):
    relay = await relays.make(loop, listen__drain_ms=30_000)
    relay.needs_daemon()
    async with await relay.connect() as used, await relay.connect() as fresh, await relay.connect() as half:
        await used.ask(request(relay.case(sized(b"ok")).on(ROUTED)))
        await half.send(b"POST /zen/go/v1/chat/comp")
        await asyncio.sleep(0.1)
        relay.daemon.tell(signal.SIGTERM)
        assert await relay.daemon.exit(3) == 0
        assert fresh.wire.gone_at is not None
        assert used.wire.gone_at is not None


async def test_a_second_instance_leaves_at_once_with_3_and_touches_nothing(relays: Relays):
    relay = await relays.make()
    relay.needs_daemon()
    await relay.ask(relay.case(sized(b"ok")).on(ROUTED))
    await asyncio.sleep(1.5)
    folder = relay.daemon.folder
    # The first one writes its log and its databases itself, every few seconds.
    own = ("stdout", "stderr", "state.json.conversations", "usage.sqlite3")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if not path.name.startswith(own)}
    out = folder.parent / f"second-{folder.name}"
    started = time.perf_counter()
    second = Daemon.launch(
        out,
        "--port",
        str(relay.daemon.port),
        state__path=folder / "state.json",
        state__events_path=folder / "events.jsonl",
    )
    assert await second.exit() == 3
    assert time.perf_counter() - started < 5
    assert str(relay.daemon.port) in second.log()
    assert second.out() == ""
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert (await relay.ask(relay.case(sized(b"still")).on(ROUTED))).data == b"still"


async def test_a_port_taken_on_the_other_loopback_is_taken_too(relays: Relays, tmp_path):
    with socket.socket(socket.AF_INET6) as sock:
        sock.bind(("::1", 0))
        sock.listen()
        daemon = Daemon.launch(tmp_path / "d", "--port", str(sock.getsockname()[1]))
        assert await daemon.exit() == 3


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"pool__size": 99}, "pool.size"),
        ({"pool__sice": 3}, "pool.size"),
        ({"listen__drain_ms": "x"}, "listen.drain_ms"),
        ({"upstream__base_url": "ftp://x"}, "upstream.base_url"),
        ({"upstream__ca_file": "/no/such/file.pem"}, "upstream.ca_file"),
    ],
)
async def test_bad_settings_are_2_name_the_key_and_bind_nothing(tmp_path, settings: dict[str, object], named: str):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    daemon = Daemon.launch(tmp_path / "d", "--port", str(port), **settings)
    assert await daemon.exit() == 2
    assert named in daemon.log()
    assert daemon.out() == ""
    assert "Traceback" not in daemon.log()
    assert sorted(path.name for path in daemon.folder.iterdir()) == ["stderr", "stdout"]


@pytest.mark.parametrize("path", [b"/v1/responses", b"/zen/go/v1/responses", ROUTED, PLAIN])
@pytest.mark.parametrize("upgrade", [b"websocket", b"WebSocket"])
async def test_an_upgrade_to_websocket_gets_426_at_once(relay: Relay, path: bytes, upgrade: bytes):
    relay.needs_daemon()
    case = relay.case("hold")
    fields = [
        (b"Connection", b"Upgrade"),
        (b"Upgrade", upgrade),
        (b"Sec-WebSocket-Version", b"13"),
        (b"Sec-WebSocket-Key", b"dGhlIHNhbXBsZSBub25jZQ=="),
    ]
    asked = time.perf_counter()
    reply = await relay.ask(case.on(path), "GET", framing="none", fields=fields)
    assert time.perf_counter() - asked < 0.5
    assert reply.status == 426
    assert json.loads(reply.data)["error"]["code"]
    assert case.requests == []


async def test_stdout_carries_one_line_with_the_address_when_connections_are_accepted(relays: Relays):
    relay = await relays.make()
    relay.needs_daemon()
    (line,) = relay.daemon.out().splitlines()
    assert f"http://127.0.0.1:{relay.daemon.port}" in line
    await relay.daemon.stop()
    assert relay.daemon.out().splitlines() == [line]


async def test_a_daemon_with_few_files_allowed_raises_its_limit(relays: Relays):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        relay = await relays.make()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    relay.needs_daemon()
    case = relay.case(0.5, sized(b"ok"))
    replies = await asyncio.gather(*[relay.ask(case.on(ROUTED), session=b"file-%d" % n) for n in range(200)])
    assert {reply.status for reply in replies} == {200}


@LOOPS
@pytest.mark.parametrize("after", [0.0, 3.0], ids=["at-once", "later"])
async def test_with_no_files_left_the_daemon_lives_recovers_and_never_spins(relays: Relays, loop: str, after: float):
    import resource

    relay = await relays.make(loop)
    relay.needs_daemon()
    await asyncio.sleep(after)
    pid = relay.daemon.process.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (64, hard))
    clients = [await relay.connect() for _ in range(90)]
    await asyncio.sleep(1)
    busy = relay.daemon.busy_ms()
    await asyncio.sleep(2)
    assert relay.daemon.process.poll() is None, relay.daemon.log()[-2000:]
    assert relay.daemon.busy_ms() - busy < 700, "a third of its time was spent on nothing"
    assert len(relay.daemon.log()) < 200_000, "the log is flooded"
    for client in clients:
        client.wire.rst()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
    await asyncio.sleep(1.2)
    assert (await relay.ask(relay.case(sized(b"ok")).on(ROUTED))).data == b"ok"
