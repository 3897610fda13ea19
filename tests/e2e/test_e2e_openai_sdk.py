"""The OpenAI Python SDK as a client: what it says through ocpool is what it says directly."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpx2
import openai
import pytest
import pytest_asyncio

from tests.fakes.client import END, chunk
from tests.fakes.relay import ALL, CROSSED, Relay, Relays
from tests.fakes.upstream import SSE, Exchange, sized

H = b"x-opencode-session"
WORDS = ["Hel", "lo ", "北京", "🌤", "."]


def event(**delta: object) -> bytes:
    body = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
    }
    return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\n\n"


EVENTS = [event(role="assistant"), *[event(content=word) for word in WORDS]]
DONE = b"data: [DONE]\n\n"
WHOLE = json.dumps(
    {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "".join(WORDS)}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8},
    }
).encode()
MESSAGES = [{"role": "user", "content": "hi"}]


async def gateway(exchange: Exchange) -> None:
    """Answers as the request asks: streamed or whole."""
    asked = json.loads(await exchange.read())
    timing = b"Server-Timing: gateway;dur=2, upstream;dur=90"
    if asked.get("stream"):
        head = SSE.replace(b"\r\n\r\n", b"\r\n" + timing + b"\r\n\r\n")
        await exchange.send(head, *map(chunk, [*EVENTS, DONE]), END, gap=0.002)
    else:
        await exchange.send(sized(WHOLE, b"200 OK", b"Content-Type: application/json", timing))


@pytest_asyncio.fixture(loop_scope="session")
async def sdk(relay: Relay) -> AsyncIterator[openai.AsyncOpenAI]:
    async with _sdk(relay) as client:
        yield client


def _sdk(relay: Relay, **options: object) -> openai.AsyncOpenAI:
    relay.needs_daemon()
    base = f"http://127.0.0.1:{relay.daemon.port}/zen/go/v1"
    return openai.AsyncOpenAI(api_key="sk-test", base_url=base, max_retries=0, timeout=20, **options)  # type: ignore[arg-type]


@contextmanager
def playing(relay: Relay, script) -> Iterator[list[Exchange]]:
    """Whatever comes without a case is answered by the script."""
    relay.upstream.strays.clear()
    relay.upstream.stray_script = script
    yield relay.upstream.strays
    relay.upstream.stray_script = None


async def text_of(stream) -> str:
    return "".join([part.choices[0].delta.content or "" async for part in stream if part.choices])


@pytest.mark.parametrize("relay", ALL, indirect=True, ids="-".join)
async def test_a_streamed_and_a_whole_answer_are_what_the_gateway_said(relay: Relay, sdk: openai.AsyncOpenAI):
    with playing(relay, gateway) as seen:
        for _ in range(3):
            stream = await sdk.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            assert await text_of(stream) == "".join(WORDS)
            whole = await sdk.chat.completions.create(model="m", messages=MESSAGES)
            assert whole.choices[0].message.content == "".join(WORDS)
            assert whole.usage is not None
            assert whole.usage.total_tokens == 8
    assert all(exchange.head.one(b"authorization") == b"Bearer sk-test" for exchange in seen)
    assert all(len(exchange.head.all(H)) == 1 for exchange in seen)
    assert len(seen) == 6


async def test_the_synchronous_client_works_too(relay: Relay):
    relay.needs_daemon()

    def talk() -> tuple[str, str | None]:
        with openai.OpenAI(api_key="k", base_url=f"http://localhost:{relay.daemon.port}/v1", max_retries=0) as client:
            with client.chat.completions.create(model="m", messages=MESSAGES, stream=True) as stream:
                streamed = "".join(part.choices[0].delta.content or "" for part in stream if part.choices)
            return streamed, client.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content

    with playing(relay, gateway) as seen:
        assert await asyncio.to_thread(talk) == ("".join(WORDS), "".join(WORDS))
    assert {exchange.target for exchange in seen} == {b"/zen/go/v1/chat/completions"}


async def test_fifty_streams_at_once_are_each_complete(relay: Relay, sdk: openai.AsyncOpenAI):
    async def talk(number: int) -> str:
        headers = {"x-opencode-session": f"sdk-session-{number:04d}"}
        return await text_of(
            await sdk.chat.completions.create(model="m", messages=MESSAGES, stream=True, extra_headers=headers)
        )

    with playing(relay, gateway) as seen:
        texts = await asyncio.gather(*[talk(number) for number in range(50)])
    assert texts == ["".join(WORDS)] * 50
    assert {exchange.head.one(H) for exchange in seen} == {b"sdk-session-%04d" % n for n in range(50)}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (b"400 Bad Request", openai.BadRequestError),
        (b"401 Unauthorized", openai.AuthenticationError),
        (b"403 Forbidden", openai.PermissionDeniedError),
        (b"429 Too Many Requests", openai.RateLimitError),
        (b"500 Oops", openai.InternalServerError),
    ],
)
async def test_an_error_of_the_gateway_is_raised_as_what_it_is(
    relay: Relay, sdk: openai.AsyncOpenAI, status: bytes, error: type[openai.APIStatusError]
):
    body = b'{"type":"error","error":{"type":"SomeError","message":"words of the gateway"}}'

    async def refuse(exchange: Exchange) -> None:
        await exchange.read()
        await exchange.send(sized(body, status, b"Content-Type: application/json", b"x-request-id: req_7"))

    with playing(relay, refuse), pytest.raises(error, match="words of the gateway") as caught:
        await sdk.chat.completions.create(model="m", messages=MESSAGES, stream=True)
    assert caught.value.request_id == "req_7"


async def test_an_error_of_ours_is_raised_with_its_code(relays: Relays):
    relay = await relays.make()
    client = _sdk(relay)
    await relay.upstream.stop()
    with pytest.raises(openai.InternalServerError) as caught:
        await client.chat.completions.create(model="m", messages=MESSAGES)
    assert caught.value.status_code == 502
    assert caught.value.code
    await client.close()


@pytest.mark.parametrize("way", ["fin", "rst"])
async def test_a_stream_that_breaks_raises_instead_of_ending(relay: Relay, sdk: openai.AsyncOpenAI, way: str):
    async def break_off(exchange: Exchange) -> None:
        await exchange.read()
        await exchange.send(SSE, *map(chunk, EVENTS[:3]))
        await asyncio.sleep(0.1)
        getattr(exchange.wire, way)()

    with playing(relay, break_off):
        stream = await sdk.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        with pytest.raises((openai.APIConnectionError, httpx2.TransportError)):
            await text_of(stream)


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
async def test_a_stream_the_sdk_gives_up_is_given_up_upstream(relay: Relay, sdk: openai.AsyncOpenAI):
    async def endless(exchange: Exchange) -> None:
        await exchange.read()
        await exchange.send(SSE)
        while True:
            await exchange.send(chunk(EVENTS[1]))
            await asyncio.sleep(0.02)

    with playing(relay, endless) as seen:
        stream = await sdk.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        async for _ in stream:
            break
        await stream.close()
        await seen[0].wire.gone(1.5)


async def test_the_sdks_own_retries_are_the_only_ones(relays: Relays):
    relay = await relays.make()
    relay.needs_daemon()

    async def busy(exchange: Exchange) -> None:
        await exchange.read()
        await exchange.send(sized(b'{"error":{"message":"x"}}', b"503 Busy", b"retry-after-ms: 10"))

    client = _sdk(relay).with_options(max_retries=2)
    with playing(relay, busy) as seen, pytest.raises(openai.InternalServerError):
        await client.chat.completions.create(model="m", messages=MESSAGES)
    assert len(seen) == 3
    await client.close()
