"""Rule 23: proxy variables, trust stores, loopback families and names each have one documented behaviour."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.fakes.client import Client, request
from tests.fakes.daemon import environment
from tests.fakes.relay import CROSSED, Relay, Relays
from tests.fakes.sockets import dial
from tests.fakes.upstream import PLAIN, ROUTED, Upstream, sized


class Tunnel:
    """An HTTP proxy that opens tunnels and remembers which."""

    def __init__(self, status: bytes = b"200 Connection established") -> None:
        self.status = status
        self.heads: list[bytes] = []
        self.port = 0

    async def start(self) -> "Tunnel":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    @property
    def url(self) -> str:
        return f"http://user:pass%20word@127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            writer.write(b"HTTP/1.1 " + self.status + b"\r\n\r\n")
            await writer.drain()
            if not self.status.startswith(b"200"):
                return
            port = int(head.split()[1].rpartition(b":")[2])
            there, back = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(self._pipe(reader, back), self._pipe(there, writer))
        except (OSError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def stop(self) -> None:
        self._server.close()
        await asyncio.sleep(0.05)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest_asyncio.fixture(loop_scope="session")
async def tunnel(relays: Relays) -> AsyncIterator[Tunnel]:
    tunnel = await Tunnel().start()
    yield tunnel
    await relays.stop_private()
    await tunnel.stop()


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_proxy_variables_are_ignored_unless_asked_for(relays: Relays, home: Path, tunnel: Tunnel, scheme: str):
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    relay = await relays.make(scheme=scheme, env=environment(home, **dict.fromkeys(names, tunnel.url)))
    relay.needs_daemon()
    assert (await relay.ask(relay.case(sized(b"ok")).on(ROUTED))).data == b"ok"
    assert tunnel.heads == []


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_proxy_that_was_named_carries_everything(relays: Relays, tunnel: Tunnel, loop: str, scheme: str):
    relay = await relays.make(loop, scheme, upstream__proxy=tunnel.url)
    relay.needs_daemon()
    assert (await relay.ask(relay.case(sized(b"ok")).on(ROUTED))).data == b"ok"
    (head,) = tunnel.heads
    assert head.startswith(b"CONNECT " + relay.upstream.host + b" HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic dXNlcjpwYXNzIHdvcmQ=" in head
    assert b"opencode" not in head.lower()


async def test_a_proxy_that_refuses_is_a_502_without_its_password(relays: Relays, tunnel: Tunnel):
    tunnel.status = b"407 Proxy Authentication Required"
    relay = await relays.make(upstream__proxy=tunnel.url)
    relay.needs_daemon()
    reply = await relay.ask(ROUTED)
    assert (reply.status, reply.one(b"content-type")) == (502, b"application/json")
    assert b"word" not in reply.data
    assert "pass%20word" not in relay.daemon.log()


@pytest.mark.parametrize(
    ("bypass", "used"),
    [
        ("", True),
        ("127.0.0.1", False),
        ("127.0.0.1:{port}", False),
        ("example.com", True),
        ("*", False),
        ("127.0.0.1:1", True),
    ],
)
async def test_the_environments_proxy_is_used_when_asked_for_but_for_no_proxy(
    relays: Relays, home: Path, tunnel: Tunnel, bypass: str, used: bool
):
    upstream = await Upstream().start()
    env = environment(home, HTTP_PROXY=tunnel.url, http_proxy=tunnel.url, NO_PROXY=bypass.format(port=upstream.port))
    env["no_proxy"] = env["NO_PROXY"]
    relay = await relays.make(env=env, upstream=upstream, upstream__proxy="env")
    relay.needs_daemon()
    assert (await relay.ask(relay.case(sized(b"ok")).on(ROUTED))).data == b"ok"
    assert bool(tunnel.heads) == used


@pytest.mark.parametrize("way", ["SSL_CERT_FILE", "SSL_CERT_DIR", "ca_file"])
async def test_a_private_authority_is_trusted_by_each_documented_way(relays: Relays, home: Path, way: str):
    import subprocess

    upstream = await Upstream(relays.authority.server()).start()
    env = environment(home)
    settings: dict[str, object] = {"upstream__ca_file": None}
    if way == "ca_file":
        settings["upstream__ca_file"] = relays.authority.file
    elif way == "SSL_CERT_FILE":
        env["SSL_CERT_FILE"] = str(relays.authority.file)
    else:
        folder = home / "certs"
        folder.mkdir()
        run = subprocess.run(
            ["openssl", "x509", "-hash", "-noout", "-in", relays.authority.file],
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            pytest.skip("no openssl command to hash the certificate with")
        (folder / f"{run.stdout.strip()}.0").write_bytes(relays.authority.file.read_bytes())
        env["SSL_CERT_DIR"] = str(folder)
    relay = await relays.make("asyncio", "https", upstream=upstream, env=env, **settings)
    relay.needs_daemon()
    assert (await relay.ask(relay.case(sized(b"ok")).on(ROUTED))).data == b"ok"


@pytest.mark.parametrize("relay", CROSSED, indirect=True, ids="-".join)
async def test_both_loopback_addresses_are_served_and_no_other(relay: Relay):
    relay.needs_daemon()
    case = relay.case(sized(b"ok"))
    for host in ("127.0.0.1", "::1"):
        async with await Client.open(host, relay.daemon.port) as client:
            assert (await client.ask(request(case.on(ROUTED), host=b"localhost"))).data == b"ok"
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for other in others:
        if other.startswith("127."):
            continue
        with pytest.raises(OSError):
            await dial(str(other), relay.daemon.port)


NAMES_BOTH = {"127.0.0.1", "::1"} <= {info[4][0] for info in socket.getaddrinfo("localhost", None)}
needs_both = pytest.mark.skipif(not NAMES_BOTH, reason="localhost has no IPv6 address on this machine")


@pytest.mark.parametrize("where", ["127.0.0.1", pytest.param("::1", marks=needs_both)])
async def test_an_upstream_on_either_loopback_is_found_by_name_without_delay(relays: Relays, where: str):
    class Named(Upstream):
        @property
        def url(self) -> str:
            return f"http://localhost:{self.port}"

    relay = await relays.make(upstream=await Named().start(where))
    relay.needs_daemon()
    reply = await asyncio.wait_for(relay.ask(relay.case(sized(b"ok")).on(ROUTED)), 1.5)
    assert reply.data == b"ok"


@needs_both
async def test_an_upstream_that_moved_to_another_address_is_found_without_a_restart(relays: Relays):
    """The name stays, the address behind it changes: the old one dies, the other serves."""

    class Named(Upstream):
        @property
        def url(self) -> str:
            return f"http://localhost:{self.port}"

    first = await Named().start("127.0.0.1")
    relay = await relays.make(upstream=first)
    relay.needs_daemon()
    assert (await relay.ask(relay.case(sized(b"ok")).on(PLAIN))).data == b"ok"
    await first.stop()
    await first.start("::1", first.port)
    reply = await asyncio.wait_for(relay.ask(relay.case(sized(b"moved")).on(PLAIN)), 5)
    assert reply.data == b"moved"
