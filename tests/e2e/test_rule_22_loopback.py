"""Rule 22: loopback is hostile: a foreign Host or Origin gets 403 and nothing goes upstream; no CORS by default."""

import json

import pytest

from tests.fakes.client import request
from tests.fakes.daemon import Daemon
from tests.fakes.http1 import Fields
from tests.fakes.relay import Relay, Relays
from tests.fakes.upstream import PLAIN, ROUTED, UNROUTED, sized

EVIL: list[Fields] = [
    [(b"Origin", b"https://evil.example"), (b"Content-Type", b"text/plain")],
    [(b"Origin", b"null")],
    [(b"Origin", b"http://localhost.evil.example")],
    [(b"Origin", b"http://127.0.0.1.nip.io:8377")],
    [(b"Origin", b"")],
    [(b"Sec-Fetch-Site", b"cross-site")],
    [(b"Sec-Fetch-Site", b"same-site")],
    [(b"Sec-Fetch-Site", b"cross-site"), (b"Sec-Fetch-Mode", b"no-cors")],
    [(b"Origin", b"https://evil.example"), (b"Sec-Fetch-Site", b"same-origin")],
]
HOSTS = [
    b"evil.example",
    b"evil.example:8377",
    b"localhost.evil.example",
    b"127.0.0.1.nip.io",
    b"169.254.169.254",
    b"[::2]",
    b"localhost@evil.example",
    b"0.0.0.0",
    b"host.docker.internal:8377",
]
FRIENDS = [b"localhost", b"localhost:8377", b"127.0.0.1", b"127.0.0.1:9", b"[::1]:8377", b"LocalHost:1"]
OURS = [b"/-/status", b"/-/repin?conversation=x", b"/-/refresh", b"/-/metrics"]


async def refused(relay: Relay, target: bytes, method: str = "POST", status: int = 403, **parts: object) -> None:
    opened = relay.upstream.opened
    case = relay.case(sized(b"ok"))
    reply = await relay.ask(case.on(target), method, **parts)  # type: ignore[arg-type]
    assert reply.status == status
    assert json.loads(reply.data)["error"]["code"]
    assert not [name for name, _ in reply.head.fields if name.lower().startswith(b"access-control")]
    assert (case.requests, relay.upstream.opened) == ([], opened)


@pytest.mark.parametrize("target", [ROUTED, UNROUTED, PLAIN, *OURS])
@pytest.mark.parametrize("fields", EVIL, ids=range(len(EVIL)))
async def test_what_a_foreign_page_sends_is_refused(relay: Relay, fields: Fields, target: bytes):
    relay.needs_daemon()
    await refused(relay, target, fields=fields)


@pytest.mark.parametrize("target", [ROUTED, PLAIN, OURS[0]])
@pytest.mark.parametrize("host", HOSTS)
async def test_a_foreign_host_is_refused(relay: Relay, host: bytes, target: bytes):
    relay.needs_daemon()
    await refused(relay, target, host=host)


@pytest.mark.parametrize("host", FRIENDS)
async def test_a_host_that_means_this_machine_is_served(relay: Relay, host: bytes):
    case = relay.case(sized(b"ok"))
    assert (await relay.ask(case.on(ROUTED), host=host)).status == 200


@pytest.mark.parametrize("fields", [[], [(b"Sec-Fetch-Site", b"none")], [(b"Sec-Fetch-Site", b"same-origin")]])
async def test_what_no_foreign_page_sends_is_served(relay: Relay, fields: Fields):
    case = relay.case(sized(b"ok"))
    assert (await relay.ask(case.on(ROUTED), fields=fields)).status == 200


@pytest.mark.parametrize("target", [ROUTED, UNROUTED, PLAIN])
async def test_a_preflight_is_refused_and_opens_no_door(relay: Relay, target: bytes):
    relay.needs_daemon()
    fields = [
        (b"Origin", b"https://evil.example"),
        (b"Access-Control-Request-Method", b"POST"),
        (b"Access-Control-Request-Private-Network", b"true"),
    ]
    await refused(relay, target, "OPTIONS", fields=fields, framing="none")


async def test_hosts_and_origins_that_are_allowed_are_served_and_no_others(relays: Relays):
    relay = await relays.make(
        listen__allowed_hosts=["ocpool", "gateway:8377"], listen__allowed_origins=["https://chat.example"]
    )
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    for host in (b"ocpool", b"ocpool:9", b"OCPOOL", b"gateway:8377"):
        assert (await relay.ask(case.on(ROUTED), host=host)).status == 200, host
    await refused(relay, ROUTED, host=b"gateway:1")
    await refused(relay, ROUTED, host=b"x.ocpool")
    friend = [(b"Origin", b"https://chat.example"), (b"Sec-Fetch-Site", b"cross-site")]
    reply = await relay.ask(case.on(ROUTED), fields=friend)
    assert (reply.status, reply.all(b"access-control-allow-origin")) == (200, [b"https://chat.example"])
    await refused(relay, ROUTED, fields=[(b"Origin", b"https://chat.example.evil")])
    seen = len(case.requests)
    preflight = await relay.ask(
        case.on(ROUTED),
        "OPTIONS",
        fields=[
            friend[0],
            (b"Access-Control-Request-Method", b"POST"),
            (b"Access-Control-Request-Headers", b"authorization"),
        ],
        framing="none",
    )
    assert preflight.status in (200, 204)
    assert preflight.all(b"access-control-allow-origin") == [b"https://chat.example"]
    assert len(case.requests) == seen


async def test_a_token_is_asked_for_everywhere_but_for_health(relays: Relays):
    relay = await relays.make(listen__token="t0ken-of-mine", listen__tokens={"ann": "anns-token"})
    relay.needs_daemon()
    for target in (ROUTED, UNROUTED, PLAIN, b"/-/status", b"/t/wrong" + ROUTED):
        await refused(relay, target, status=401)
    await refused(relay, ROUTED, status=401, fields=[(b"x-ocpool-token", b"T0ken-of-mine")])
    for page in (b"/-/health", b"/-/ready"):
        assert (await relay.ask(page, "GET", framing="none")).status == 200
    case = relay.case(sized(b"ok"))
    for token in (b"t0ken-of-mine", b"anns-token"):
        assert (await relay.ask(case.on(ROUTED), fields=[(b"X-Ocpool-Token", token)])).status == 200
        assert (await relay.ask(case.on(b"/t/" + token + b"/s/talk" + ROUTED))).status == 200
    assert all(seen.target.startswith(ROUTED) and b"oken" not in seen.head.raw for seen in case.requests)


@pytest.mark.parametrize("settings", [{"listen__host": "0.0.0.0"}, {"listen__host": "::"}])
async def test_an_open_address_without_a_token_is_not_served(relays: Relays, tmp_path, settings: dict[str, object]):
    daemon = Daemon.launch(tmp_path / "open", **settings)
    assert await daemon.exit() == 2
    assert "listen." in daemon.log()
    assert daemon.out() == ""


async def test_an_open_address_is_served_with_a_token_or_when_insisted_upon(relays: Relays):
    for settings in ({"listen__token": "t0ken-of-mine"}, {"listen__insecure": True}):
        relay = await relays.make(listen__host="0.0.0.0", **settings)
        relay.needs_daemon()
        relay.daemon.host = "127.0.0.1"
        async with await relay.connect() as client:
            reply = await client.ask(request(b"/-/health", method=b"GET", framing="none"), "GET")
        assert reply.status == 200


async def test_bodies_of_what_is_refused_are_never_read_as_requests(relay: Relay):
    """Two refused heads that differ in their lengths alone, and a good request behind them on one connection."""
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    evil = [(b"Origin", b"https://evil.example")]
    async with await relay.connect() as client:
        for size in (5, 5_000, 50):
            reply = await client.ask(request(case.on(ROUTED), fields=evil, body=b"x" * size))
            assert (reply.status, json.loads(reply.data)["error"]["code"]) == (403, "forbidden")
        assert (await client.ask(request(case.on(ROUTED)))).data == b"ok"
    assert len(case.requests) == 1
