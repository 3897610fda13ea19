"""The simulated gateway on sockets: its paths, the order of its checks, what it writes down, how it breaks off."""

import asyncio
import gzip
import hashlib
import time

import orjson
import pytest

from pool.clock import Clock
from proxy.simulator.faults import Behaviour, Ending, Fault, Script
from proxy.simulator.knobs import Knobs
from proxy.simulator.refusals import overloaded
from proxy.simulator.server import Gateway
from proxy.simulator.styles import WINDOWS
from tests.fakes.simulated import Got, ask, chat, gateway, quick
from tests.fakes.tls import Authority

TREES = ("/zen/v1", "/zen/go/v1", "/inference/openai/v1", "/inference/go/openai/v1")


@pytest.mark.parametrize("base", TREES)
async def test_both_trees_serve_chat(base):
    """The same reply on each path, streamed and whole."""
    async with gateway(knobs=quick()) as made:
        whole = await ask(made, chat(f"{base}/chat/completions"))
        streamed = await ask(made, chat(f"{base}/chat/completions", stream=True))
        assert (whole.status, streamed.status) == (200, 200)
        assert whole.json()["object"] == "chat.completion"
        assert streamed.head.one(b"content-type") == b"text/event-stream"
        assert streamed.body.rstrip().endswith(b"data: [DONE]")
        assert made.log[0].provider == ("opencode-go" if "/go/" in base else "opencode")


@pytest.mark.parametrize(
    ("path", "model", "key"),
    [
        ("/zen/v1/responses", "gpt-6-luna", "authorization"),
        ("/zen/go/v1/responses", "gpt-6-luna", "authorization"),
        ("/zen/go/v1/messages", "minimax-m3", "x-api-key"),
        ("/inference/anthropic/v1/messages", "claude-haiku-5-5", "x-api-key"),
        ("/inference/go/anthropic/v1/messages", "minimax-m3", "authorization"),
        ("/zen/v1/models/gemini-4-argon:generateContent", "", "x-goog-api-key"),
        ("/inference/go/google/v1beta/models/gemini-4-argon:streamGenerateContent?alt=sse", "", "x-goog-api-key"),
        ("/zen/v1/systemone", "s", "authorization"),
        ("/inference/openai/v1/embeddings", "e", "authorization"),
    ],
)
async def test_the_other_formats_are_served(path, model, key):
    """Each with the credential field its tree reads."""
    value = "Bearer sk-a" if key == "authorization" else "sk-a"
    async with gateway(knobs=quick()) as made:
        got = await ask(made, chat(path, model=model, key=None, fields=((key, value),), stream=True))
        assert got.status == 200, got.body
        assert got.end == "complete"
        assert made.log[0].key_digest == hashlib.sha256(b"sk-a").hexdigest()[:8]


async def test_lists_and_usage_and_options():
    """Models without a key, usage with one, OPTIONS without asking anything."""
    async with gateway("limits") as made:
        for path in ("/zen/v1/models", "/zen/go/v1/models", "/inference/v1/models", "/inference/go/v1/models"):
            got = await ask(made, chat(path, method="GET", key=None, session=None))
            assert got.json()["data"][0]["owned_by"] == "opencode"
        assert (await ask(made, chat("/zen/go/v1/usage", method="GET", key=None))).status == 401
        usage = await ask(made, chat("/inference/go/v1/usage", method="GET", session=None))
        assert usage.json()["usage"]["rolling"]["status"] == "ok"
        options = await ask(made, chat(method="OPTIONS", key=None, session=None))
        assert options.head.one(b"access-control-allow-methods") == b"GET, POST, OPTIONS"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/v1/models",
        "/zen/v1/models/glm-5.3",
        "/inference/go/openai/v1/models",
        "/zen/go/v1/models/gemini-4-argon:generateContent",
    ],
)
async def test_unknown_paths_are_pages(path):
    """The site's HTML 404."""
    async with gateway() as made:
        got = await ask(made, chat(path, method="GET"))
        assert got.status == 404
        assert got.head.one(b"content-type").startswith(b"text/html")


def _without(**changes: object) -> bytes:
    """A request that is wrong in every later way, too."""
    wrong: dict[str, object] = {"agent": None, "key": None, "session": None, "model": "nope-1"}
    return chat(**(wrong | changes))


async def test_the_order_of_the_checks():
    """The gate, the key, the session, the model, the protocol."""
    async with gateway() as made:
        gate = await ask(made, _without())
        assert (gate.status, gate.body) == (403, b"error code: 1010")
        keyless = await ask(made, _without(agent="a/1"))
        assert (keyless.status, keyless.json()["error"]["type"]) == (401, "AuthError")
        sessionless = await ask(made, _without(agent="a/1", key="sk-a"))
        assert (sessionless.status, sessionless.json()["error"]["type"]) == (400, "MissingSessionID")
        unknown = await ask(made, _without(agent="a/1", key="sk-a", session="s"))
        assert (unknown.status, unknown.json()["error"]) == (
            401,
            {"type": "ModelError", "message": "Model nope-1 is not supported"},
        )
        protocol = await ask(made, chat(model="minimax-m3"))
        assert (protocol.status, protocol.json()["error"]["type"]) == (400, "ModelProtocolUnsupported")
        made.limit("GoUsageLimitError", 60_000, retry_after_s=146_553)
        limited = await ask(made, chat())
        assert (limited.status, limited.head.one(b"retry-after")) == (429, b"146553")
        assert limited.json()["metadata"]["limitName"] == "5 hour"
        made.calm()
        assert (await ask(made, chat(max_tokens=1))).status == 200
        assert all(record.endpoint is None for record in made.log[:-1])


async def test_a_legacy_account_is_checked_in_another_order():
    """The model first, and the inference service's own words carry its name."""
    async with gateway("legacy") as made:
        assert (await ask(made, _without(agent="a/1"))).json()["error"]["type"] == "ModelError"
        refused = await ask(made, chat(session=None))
        assert refused.json()["error"]["message"].startswith("Error from provider (Console Go): Request is missing")


@pytest.mark.parametrize(
    ("key", "fields", "status", "message"),
    [
        ("nonsense", (), 401, "Invalid API key."),
        ("sk-invalid-1", (), 401, "Invalid API key."),
        ("sk-blocked-1", (), 401, "Request blocked by upstream provider"),
        ("st_token", (), 401, "Invalid API key."),
        ("st_token", (("x-opencode-org-id", "org_1"),), 200, ""),
        ("oc_sk_1", (), 200, ""),
        ("public", (), 401, "Missing API key."),
    ],
)
async def test_keys(key, fields, status, message):
    """Any key of a known shape works, but for two that never do."""
    async with gateway(knobs=quick()) as made:
        got = await ask(made, chat("/inference/go/openai/v1/chat/completions", key=key, fields=fields))
        assert got.status == status
        assert message in got.body.decode()


async def test_free_models_are_for_opencode_itself():
    """On either tree, and with a session."""
    async with gateway(knobs=quick()) as made:
        assert (await ask(made, chat("/zen/v1/chat/completions", model="beam-free", session=None))).status == 400
        assert (await ask(made, chat(model="beam-free"))).json()["error"]["type"] == "FreeTierError"
        assert (await ask(made, chat(model="beam-free", agent="opencode/1.18.33", key="public"))).status == 200


async def test_any_of_the_accepted_fields_is_a_session():
    """An empty one counts as missing; which wins is a knob; all are written down."""
    two = (("X-Session-Affinity", "other"), ("x-session-id", "third"))
    async with gateway(knobs=quick()) as made:
        await ask(made, chat(session="mine", fields=two))
        await ask(made, chat(session="", fields=two))
        await ask(made, chat(session=None, fields=(("x-session-id", "third"),)))
        made.knobs = Knobs(session_fields=("x-session-affinity", "x-opencode-session"))
        await ask(made, chat(session="mine", fields=two, max_tokens=1))
        assert [record.session for record in made.log] == ["mine", "other", None, "other"]
        assert made.log[0].session_fields == (
            ("x-opencode-session", "mine"),
            ("x-session-affinity", "other"),
            ("x-session-id", "third"),
        )
        assert made.log[2].status == 400


async def test_what_is_written_down():
    """Enough to judge a relay by, and no secret when it is printed."""
    async with gateway(knobs=quick()) as made:
        request = chat(agent="ocpool/0.1", max_tokens=1)
        await ask(made, request)
        record = made.log[0]
        body = request.partition(b"\r\n\r\n")[2]
        assert record.body_sha256 == hashlib.sha256(body).hexdigest()
        assert record.probe
        assert (record.status, record.max_tokens, record.ended, record.aborted) == (200, 1, True, False)
        assert record.endpoint.startswith(("native", "relay"))
        assert record.bad == (record.endpoint == "relay-1")
        assert 0 < record.head_ms <= record.ttfb_ms <= record.ended_ms
        assert (b"User-Agent", b"ocpool/0.1") in record.fields
        printed = orjson.dumps(record.facts())
        assert b"sk-test" not in printed
        assert b"s-1" not in printed
        await ask(made, chat(agent="ocpool/0.1", max_tokens=2))
        await ask(made, chat(agent="other/0.1", max_tokens=1))
        assert [one.probe for one in made.log] == [True, False, False]


async def test_the_client_waits_as_long_as_is_told():
    """server-timing tells simulated ms, and they pass at the clock's scale."""
    async with gateway(scale=20) as made:
        began = time.monotonic()
        got = await ask(made, chat(max_tokens=1))
        waited_ms = (time.monotonic() - began) * 1000 * 20
        told = float(got.head.one(b"server-timing").split(b"upstream;dur=")[1].split(b",")[0].split(b";")[0])
        assert abs(told - made.log[0].upstream_ms) < 1
        assert told <= waited_ms
        assert made.log[0].head_ms == pytest.approx(waited_ms, abs=1000)


async def test_every_spelling_of_server_timing_by_a_knob():
    """And none when it is absent."""
    async with gateway(knobs=quick(timing="two-lines")) as made:
        assert len((await ask(made, chat())).head.all(b"server-timing")) == 2
        made.knobs = quick(timing="absent")
        assert (await ask(made, chat())).head.all(b"server-timing") == []


async def test_a_prompt_is_cached_once_it_was_read():
    """The second request of a session reports what need not be read again."""
    text = "a long story. " * 1000
    async with gateway("sticky", scale=600) as made:
        usage = [(await ask(made, chat(text=text, max_tokens=1))).json()["usage"] for _ in range(2)]
        cached = [one["prompt_tokens_details"]["cached_tokens"] for one in usage]
        assert cached[0] == 0
        assert cached[1] > 3_000
        assert [record.cached_tokens for record in made.log] == cached


async def test_two_gateways_of_a_seed_agree():
    """Over sockets as in the plans."""
    async with gateway(seed=5, knobs=quick()) as one, gateway(seed=5, knobs=quick()) as other:
        for number in range(20):
            await ask(one, chat(session=f"s-{number}"))
            await ask(other, chat(session=f"s-{number}"))
        assert [record.endpoint for record in one.log] == [record.endpoint for record in other.log]
        assert {record.bad for record in one.log} == {True, False}


async def _ended(made: Gateway) -> None:
    async with asyncio.timeout(1):
        while not made.log[0].ended:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("fin", [True, False])
async def test_a_client_that_leaves_is_noticed_within_a_second(fin):
    """Before the head, by FIN and by RST."""
    async with gateway(scale=1, knobs=quick(upstream_ms=60_000)) as made:
        _, writer = await asyncio.open_connection("127.0.0.1", made.port)
        writer.write(chat())
        while not made.log:
            await asyncio.sleep(0.01)
        if fin:
            writer.close()
        else:
            writer.transport.abort()
        await _ended(made)
        assert made.log[0].aborted


async def test_a_client_that_leaves_a_stream_is_noticed():
    """What it has not read is not counted as served."""
    async with gateway(scale=1, knobs=quick(tokens=2_000, tokens_per_s=100)) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        writer.write(chat(stream=True))
        await reader.readuntil(b"data:")
        writer.close()
        await _ended(made)
        assert made.log[0].aborted
        assert made.log[0].ttfb_ms is not None


async def _broken(fault: Fault, *, stream: bool = True, wait_s: float = 5) -> tuple[Got, Gateway]:
    async with gateway(scale=1, knobs=Knobs(every=quick(fault=fault).every, silence_ms=60, stall_ms=50)) as made:
        return await asyncio.wait_for(ask(made, chat(stream=stream)), wait_s), made


@pytest.mark.parametrize(
    ("fault", "status", "end"),
    [
        (Fault.SILENT_524, 524, "complete"),
        (Fault.RESET_BEFORE_HEAD, None, "reset"),
        (Fault.CLOSE_BEFORE_HEAD, None, "eof"),
        (Fault.RESET_MID_CHUNK, 200, "reset"),
        (Fault.CLOSE_MID_CHUNK, 200, "eof"),
        (Fault.CLOSE_WITHOUT_END, 200, "eof"),
        (Fault.NO_FINISH, 200, "complete"),
        (Fault.STALL, 200, "complete"),
        (Fault.ERROR_EVENT, 200, "complete"),
        (Fault.ERROR_200, 200, "complete"),
        (Fault.EMPTY_200, 200, "complete"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_breaks_on_the_wire(fault, status, end, stream):
    """Each ends on the wire as it says."""
    got, made = await _broken(fault, stream=stream)
    assert got.end == end
    assert (got.status if got.head else None) == status
    assert made.log[0].fault == fault.value


@pytest.mark.parametrize("fault", [Fault.SILENT_BODY, Fault.HANG])
async def test_silence_lasts_until_the_client_leaves(fault):
    """Nothing comes, and nothing ends."""
    with pytest.raises(TimeoutError):
        await _broken(fault, wait_s=0.3)


async def test_exact_bytes_on_demand():
    """A script is sent as it is, whatever it says."""
    raw = b"HTTP/1.1 299 Odd\r\nX-Odd:  a\r\nx-odd: b\r\nContent-Length: 2\r\n\r\nhi"
    async with gateway() as made:
        made.script(
            lambda record: record.session == "odd",
            Behaviour(script=Script([(0, raw[:9]), (30, raw[9:])], Ending.CLOSE)),
        )
        assert (await ask(made, chat(session="odd"))).raw == raw
        assert (await ask(made, chat(session="odd", max_tokens=1))).status == 200


async def test_a_reply_can_be_held_and_refused_by_hand():
    """One request waits for the test, the next is refused, the third is served."""
    gate = asyncio.Event()
    async with gateway(knobs=quick()) as made:
        made.script(None, Behaviour(hold=gate))
        made.script(None, Behaviour(refusal=overloaded(529, 1)))
        held = asyncio.ensure_future(ask(made, chat()))
        await asyncio.sleep(0.1)
        refused = await ask(made, chat())
        assert not held.done()
        assert (refused.status, made.log[1].error) == (529, "overloaded")
        gate.set()
        assert (await held).status == 200
        assert (await ask(made, chat())).status == 200


async def test_overload_by_hand_of_one_endpoint_and_of_all():
    """One endpoint's is its own; the gateway's meets every id."""
    async with gateway(knobs=quick()) as made:
        made.overload(600_000, endpoint="relay-1", status=429)
        for number in range(12):
            await ask(made, chat(session=f"s-{number}"))
        assert {record.status for record in made.log if record.bad} == {429}
        assert {record.status for record in made.log if not record.bad} == {200}
        made.overload(600_000, status=503)
        assert {(await ask(made, chat(session=f"s-{number}"))).status for number in range(12)} == {503}
        made.calm()
        assert (await ask(made, chat())).status == 200
        with pytest.raises(ValueError, match="no limit 'rain'"):
            made.limit("rain", 1)


async def test_odd_bodies():
    """Compressed ones are read, what is no JSON is refused, HTTP/1.0 and 100-continue are answered."""
    async with gateway(knobs=quick()) as made:
        body = gzip.compress(orjson.dumps({"model": "glm-5.3", "messages": [], "stream": True}))
        assert (await ask(made, chat(body=body, fields=(("content-encoding", "gzip"),)))).status == 200
        assert (made.log[0].model, made.log[0].stream) == ("glm-5.3", True)
        assert (await ask(made, chat(body=b'{"model":"glm-5.3", oops'))).status == 400
        assert (await ask(made, chat(body=b"[]"))).json()["error"]["message"] == "Model undefined is not supported"
        old = await ask(made, chat(version="1.0", stream=True))
        assert (old.end, old.head.one(b"transfer-encoding")) == ("eof", None)
        assert b"[DONE]" in old.body
        asked = await ask(made, chat(fields=(("expect", "100-continue"), ("connection", "close"))))
        assert asked.raw.startswith(b"HTTP/1.1 100 Continue\r\n\r\n")


async def test_connections_are_kept_and_closed_as_asked():
    """Two requests on one connection, the second asks to close."""
    async with gateway(knobs=quick(style=WINDOWS)) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        writer.write(chat(stream=True) + chat(stream=True, fields=(("connection", "close"),)))
        raw = await reader.read(-1)
        writer.close()
        assert raw.count(b"HTTP/1.1 200 OK") == 2
        assert raw.count(b"0\r\n\r\n") == 2


async def test_it_speaks_tls(tmp_path):
    """With any certificate it is given."""
    authority = Authority(tmp_path)
    made = Gateway("sticky", 1, Clock(100), knobs=quick())
    await made.start(ssl=authority.server())
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", made.port, ssl=authority.client(), server_hostname="localhost"
    )
    writer.write(chat(fields=(("connection", "close"),)))
    assert b"chat.completion" in await reader.read(-1)
    writer.close()
    assert made.url.startswith("https://")
    await made.stop()


async def test_many_conversations_at_once_are_cheap():
    """A hundred streams of a few seconds each, at scale 20."""
    async with gateway("balanced", scale=20) as made:
        began = time.process_time()
        got = await asyncio.gather(
            *(ask(made, chat(session=f"s-{n}", stream=True, max_tokens=150)) for n in range(100))
        )
        assert all(one.end == "complete" for one in got)
        assert len(made.log) == 100
        assert time.process_time() - began < 5


async def test_stopping_ends_every_connection_and_blames_no_client():
    """And the log keeps no more than it was told to."""
    ended = []
    made = Gateway("sticky", 1, Clock(1), knobs=quick(upstream_ms=60_000), on_end=ended.append, keep=1)
    await made.start()
    waiting = [asyncio.ensure_future(ask(made, chat())) for _ in range(3)]
    while made._asked < 3:
        await asyncio.sleep(0.01)
    await made.stop()
    await asyncio.gather(*waiting)
    assert len(ended) == 3
    assert not any(record.aborted for record in ended)
    assert len(made.log) == 1
    await made.stop()
