"""Rule 4: no byte reaches the client that the upstream did not send."""

import asyncio

import pytest

from tests.fakes.client import END, chunk, request
from tests.fakes.relay import ALL, CROSSED, Relay
from tests.fakes.upstream import ROUTED, SSE, UNROUTED

STREAMS = [
    pytest.param([b"event: response.completed\ndata: {}\n\n"], id="no-done"),
    pytest.param([b"id: 1\ndata: {}\n\n", b": ping\n", b"data: {}\n\n"], id="ping-without-blank-line"),
    pytest.param([b": OPENROUTER PROCESSING\n\n", b":no space\n\n"], id="comments"),
    pytest.param([b"\xef\xbb\xbfdata:x\r\n\r\n", b"data: y\r\r", b"data:z\n\n"], id="bom-crlf-bare-cr"),
    pytest.param([b"data: [DONE]\n\n", b"data: [DONE]\n\n", b'data: {"cost":1}\n\n'], id="done-twice-and-more"),
    pytest.param([b"data: no blank line at the end"], id="unfinished-event"),
    pytest.param([b'data: {"error":{"message":"boom"}}\n\n'], id="error-inside"),
    pytest.param([b"event: x\n", b'data: {"a":', b"1}\n\n"], id="split-inside-a-line"),
    pytest.param([b"\xff\xfe\x00garbage\n\n"], id="no-text"),
    pytest.param([], id="nothing"),
]


@pytest.mark.parametrize("relay", ALL, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize("events", STREAMS)
async def test_a_stream_arrives_verbatim_down_to_its_chunks(relay: Relay, events: list[bytes], path: bytes):
    case = relay.case(SSE, *map(chunk, events), END)
    reply = await relay.ask(case.on(path))
    assert reply.complete
    assert reply.data == b"".join(events)
    assert reply.raw == b"".join(map(chunk, events)) + END


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_nothing_is_put_into_pauses_between_or_inside_lines(relay: Relay, path: bytes):
    parts = [b"event: x\n", b'data: {"a":', b"1}\n\n"]
    script: list[object] = [SSE]
    for part in parts:
        script += [chunk(part), 1.2]
    case = relay.case(*script, END)
    reply = await relay.ask(case.on(path))
    assert reply.raw == b"".join(map(chunk, parts)) + END


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
async def test_nothing_is_put_into_pauses_of_40_seconds(relay: Relay):
    parts = [b"event: x\n", b'data: {"a":', b"1}\n\n"]
    case = relay.case(SSE, chunk(parts[0]), 40.0, chunk(parts[1]), 40.0, chunk(parts[2]), END)
    reply = await relay.ask(case.on(ROUTED), within=120)
    assert reply.raw == b"".join(map(chunk, parts)) + END


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
async def test_a_silent_upstream_means_a_silent_proxy(relay: Relay, path: bytes):
    case = relay.case(SSE, chunk(b"data: 1\n\n"), "hold")
    async with await relay.connect() as client:
        await client.send(request(case.on(path)))
        await client.head()
        await client.wire.until(lambda: client.wire.data.endswith(chunk(b"data: 1\n\n")), 2, "the event")
        size = len(client.wire.data)
        await asyncio.sleep(3)
        assert len(client.wire.data) == size
        assert client.wire.gone_at is None


@pytest.mark.parametrize("path", [ROUTED, UNROUTED])
@pytest.mark.parametrize("way", ["fin", "rst"])
async def test_no_error_is_appended_to_a_stream_whose_upstream_broke(relay: Relay, way: str, path: bytes):
    sent = [chunk(b"data: %d\n\n" % n) for n in range(5)]
    script: list[object] = [SSE]
    for part in sent:
        script += [part, 0.03]
    case = relay.case(*script, way)
    async with await relay.connect() as client:
        await client.send(request(case.on(path)))
        reply = await client.rest(await client.head())
    assert reply.raw == b"".join(sent)


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
async def test_one_broken_upstream_leaves_the_other_stream_and_the_process_alone(relay: Relay):
    script: list[object] = [SSE]
    for n in range(50):
        script += [chunk(b"data: %d\n\n" % n), 0.02]
    healthy, broken = relay.case(*script, END), relay.case(*script[:11], "rst")
    pid = relay.daemon.process.pid if relay._daemon else 0
    good, bad = await asyncio.gather(
        relay.ask(healthy.on(ROUTED), session=b"healthy"), relay.ask(broken.on(ROUTED), session=b"broken")
    )
    assert good.complete
    assert good.data == b"".join(b"data: %d\n\n" % n for n in range(50))
    assert not bad.complete
    assert bad.data == b"".join(b"data: %d\n\n" % n for n in range(5))
    assert not pid or (relay.daemon.process.pid, relay.daemon.process.poll()) == (pid, None)
