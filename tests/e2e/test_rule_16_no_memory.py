"""Rule 16: no cookie, netrc entry or state of authentication crosses from one request to another."""

import pytest

from tests.fakes.client import request
from tests.fakes.daemon import environment
from tests.fakes.relay import Relay, Relays
from tests.fakes.upstream import PLAIN, ROUTED, UNROUTED, sized


@pytest.mark.parametrize("path", [ROUTED, UNROUTED, PLAIN])
async def test_a_cookie_that_upstream_set_is_never_sent_back_by_us(relay: Relay, path: bytes):
    setter = relay.case(sized(b"ok", b"200 OK", b"Set-Cookie: sid=secret; Path=/"))
    reader = relay.case(sized(b"ok"))
    async with await relay.connect() as client:
        reply = await client.ask(request(setter.on(path)))
        assert reply.all(b"set-cookie") == [b"sid=secret; Path=/"]
        await client.ask(request(reader.on(path)))
    await relay.ask(reader.on(path))
    assert all(b"cookie" not in seen.head.raw.lower() for seen in reader.requests)


@pytest.mark.parametrize("path", [ROUTED, UNROUTED, PLAIN])
async def test_a_challenge_is_passed_on_and_not_answered(relay: Relay, path: bytes):
    case = relay.case(sized(b"{}", b"401 Unauthorized", b'WWW-Authenticate: Basic realm="x"'))
    async with await relay.connect() as client:
        reply = await client.ask(request(case.on(path), fields=[(b"Authorization", b"Bearer first")]))
        assert reply.status == 401
        await client.ask(request(case.on(path)))
    first, second = case.requests
    assert first.head.all(b"authorization") == [b"Bearer first"]
    assert second.head.all(b"authorization") == []


@pytest.mark.parametrize("path", [ROUTED, PLAIN])
async def test_each_of_two_clients_sends_its_own_credential_on_a_shared_connection(relay: Relay, path: bytes):
    case = relay.case(sized(b"ok"))
    for number in range(6):
        await relay.ask(
            case.on(path),
            fields=[(b"Authorization", b"Bearer k%d" % number)],
            session=b"shared-session-%d" % (number % 2),
        )
    assert [seen.head.all(b"authorization") for seen in case.requests] == [[b"Bearer k%d" % n] for n in range(6)]


async def test_netrc_is_never_read(relays: Relays, tmp_path):
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password from-netrc\ndefault login me password from-netrc\n")
    netrc.chmod(0o600)
    relay = await relays.make(env=environment(tmp_path, NETRC=str(netrc)))
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    for path in (ROUTED, UNROUTED, PLAIN):
        await relay.ask(case.on(path))
    assert all(seen.head.all(b"authorization") == [] for seen in case.requests)
