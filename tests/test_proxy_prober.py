"""What a probe sends, and what it makes of the answer; over real sockets."""

import asyncio
import contextlib
import json
import socket

import pytest

from config.settings import Settings
from pool.clock import Clock
from pool.model import ProbeKind
from proxy import __version__
from proxy.prober import Prober, probe_body
from proxy.targets import ProbeTarget
from proxy.wire.pool import Upstream

SESSION = "7d1a90c4-0000-4000-8000-000000000001"
ANSWER = json.dumps({"id": "chatcmpl-1", "choices": [], "usage": {"total_tokens": 9}}).encode()


def target(api="completions", path=b"/zen/go/v1/chat/completions"):
    return ProbeTarget("opencode-go", "m", api, path, "s", ((b"authorization", b"Bearer sk-test"),))


def answer(body=ANSWER, status=200, *fields):
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@contextlib.asynccontextmanager
async def gateway(reply, *, wait_s=0.0):
    """A raw upstream that gives every request the same bytes; yields a prober's Upstream and what was asked."""
    asked = []
    serving = []

    async def serve(reader, writer):
        serving.append((asyncio.current_task(), writer))
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = [line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2]]
                length = int(dict(fields)[b"content-length"])
                asked.append((head.split(b"\r\n")[0], fields, await reader.readexactly(length)))
                await asyncio.sleep(wait_s)
                if reply is None:
                    break
                writer.write(reply)
                await writer.drain()
                if b"Content-Length" not in reply:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    upstream = Upstream(f"http://127.0.0.1:{port}", clock=Clock())
    try:
        yield upstream, asked
    finally:
        upstream.close()
        server.close()
        for task, writer in serving:
            writer.transport.abort()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task], timeout=2)
        await asyncio.sleep(0.01)


async def probe(reply, *, settings=None, timeout_ms=3000, wait_s=0.0):
    async with gateway(reply, wait_s=wait_s) as (upstream, _):
        prober = Prober(upstream, Clock(), settings or Settings())
        return await prober.probe(target(), SESSION, timeout_ms)


async def test_a_probe_is_one_honest_request_on_the_id():
    async with gateway(answer()) as (upstream, asked):
        await Prober(upstream, Clock(), Settings()).probe(target(), SESSION, 3000)
        [(line, fields, body)] = asked
    assert line == b"POST /zen/go/v1/chat/completions HTTP/1.1"
    sent = {name.lower(): value for name, value in fields}
    assert sent[b"user-agent"] == f"ocpool/{__version__}".encode()
    assert sent[b"x-opencode-session"] == SESSION.encode()
    assert sent[b"authorization"] == b"Bearer sk-test"
    assert len(sent) == len(fields)
    assert json.loads(body) == {
        "model": "m",
        "messages": [{"role": "user", "content": "OK"}],
        "max_tokens": 1,
        "stream": False,
    }


async def test_the_settings_name_the_session_field_and_the_tokens():
    settings = Settings.model_validate({"upstream": {"session_header": "X-Route"}, "models": {"m": {"max_tokens": 7}}})
    async with gateway(answer()) as (upstream, asked):
        await Prober(upstream, Clock(), settings).probe(target(), SESSION, 3000)
        [(_, fields, body)] = asked
    assert [b"x-route", SESSION.encode()] in fields
    assert json.loads(body)["max_tokens"] == 7


async def test_an_answer_is_read_into_the_result():
    found = await probe(
        answer(
            ANSWER,
            200,
            "Server-Timing: gateway;dur=10, upstream;dur=1447, total;dur=1498",
            "X-Opencode-Endpoint-Id: novita",
        )
    )
    assert (found.id, found.kind, found.upstream_ms, found.written) == (SESSION, ProbeKind.FAST, 1447, True)
    assert (found.status, found.endpoint, found.body_id, found.tokens) == (200, "novita", "chatcmpl-1", 9)
    assert 0 < found.wall_ms < 2500


OVERLOADED = b'{"message":"Upstream request failed: [overloaded] the server is overloaded; retry shortly"}'
LIMIT = b'{"type":"error","error":{"type":"GoUsageLimitError","message":"x"}}'
AUTH = b'{"type":"error","error":{"type":"AuthError","message":"Invalid API key."}}'


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (answer(ANSWER, 200, "Server-Timing: upstream;dur=2500"), ProbeKind.FAST),
        (answer(ANSWER, 200, "Server-Timing: upstream;dur=2501"), ProbeKind.SLOW),
        (answer(ANSWER, 200, "Server-Timing: gateway;dur=99999"), ProbeKind.FAST),
        (answer(OVERLOADED, 429), ProbeKind.OVERLOADED),
        (answer(OVERLOADED, 503), ProbeKind.OVERLOADED),
        (answer(b"", 529), ProbeKind.OVERLOADED),
        (answer(OVERLOADED, 200), ProbeKind.OVERLOADED),
        (answer(LIMIT, 429), ProbeKind.LIMIT),
        (answer(LIMIT, 200), ProbeKind.LIMIT),
        (answer(b"", 402), ProbeKind.LIMIT),
        (answer(AUTH, 401), ProbeKind.UNAUTHORIZED),
        (answer(b"error code: 1010", 403), ProbeKind.UNAUTHORIZED),
        (answer(b'{"error":{"type":"MissingSessionID","message":"x"}}', 400), ProbeKind.REJECTED),
        (answer(b"", 404), ProbeKind.REJECTED),
        (answer(b"", 500), ProbeKind.TRANSPORT),
        (answer(b"<html>sign in to the network</html>", 200), ProbeKind.TRANSPORT),
        (answer(b'{"error":{"message":"boom"}}', 200), ProbeKind.TRANSPORT),
        (answer(ANSWER, 302), ProbeKind.REJECTED),
        (answer(b"", 302, "Content-Type: text/html", "Location: http://portal.example/login"), ProbeKind.TRANSPORT),
        (answer(b"<html>", 511), ProbeKind.TRANSPORT),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{", ProbeKind.TRANSPORT),
        (b"nonsense\r\n\r\n", ProbeKind.TRANSPORT),
        (None, ProbeKind.TRANSPORT),
    ],
)
async def test_each_answer_has_its_kind(reply, kind):
    found = await probe(reply)
    assert found.kind is kind
    assert found.written


async def test_a_limits_window_is_told():
    found = await probe(answer(LIMIT, 429, "Retry-After: 120"))
    assert found.retry_after_ms == 120_000


async def test_the_old_classifier_rejects_a_fast_answer_for_its_id():
    settings = Settings.model_validate({"probe": {"require_gateway_id": True}})
    timing = "Server-Timing: upstream;dur=448"
    assert (await probe(answer(ANSWER, 200, timing), settings=settings)).kind is ProbeKind.MISMATCH
    own = ANSWER.replace(b"chatcmpl-1", b"gw-7-0001")
    assert (await probe(answer(own, 200, timing), settings=settings)).kind is ProbeKind.FAST


async def test_a_silent_upstream_is_given_up_after_the_timeout():
    found = await probe(answer(), timeout_ms=80, wait_s=1.0)
    assert found.kind is ProbeKind.TIMEOUT
    assert found.written
    assert 70 <= found.wall_ms < 900


async def test_a_probe_that_never_left_is_not_written():
    held = socket.socket()
    held.bind(("127.0.0.1", 0))  # bound, not listening
    upstream = Upstream(f"http://127.0.0.1:{held.getsockname()[1]}", clock=Clock())
    found = await Prober(upstream, Clock(), Settings()).probe(target(), SESSION, 1000)
    held.close()
    assert (found.kind, found.written) == (ProbeKind.TRANSPORT, False)


async def test_without_server_timing_the_wall_clock_to_the_head_decides():
    settings = Settings.model_validate({"probe": {"max_upstream_ms": 50}})
    assert (await probe(answer(), settings=settings, wait_s=0.12)).kind is ProbeKind.SLOW


async def test_a_connection_serves_one_probe_after_the_other():
    async with gateway(answer()) as (upstream, asked):
        prober = Prober(upstream, Clock(), Settings())
        for _ in range(3):
            await prober.probe(target(), SESSION, 3000)
        assert len(asked) == 3
        assert upstream.open == 1


@pytest.mark.parametrize("api", ["completions", "responses", "messages"])
def test_each_api_gets_a_body_it_understands(api):
    body = json.loads(probe_body(api, "m", 1))
    assert body["model"] == "m"
    assert body["stream"] is False
    assert ("input" in body) is (api == "responses")
