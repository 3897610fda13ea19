"""The daemon's own addresses, asked over a socket."""

import asyncio
import json
from types import SimpleNamespace

import aiohttp
import pytest
from aiohttp.test_utils import RawTestServer
from prometheus_client.parser import text_string_to_metric_families

from config.settings import Settings
from pool.clock import Clock
from pool.model import Note
from proxy import __version__
from proxy.control.routes import PAGES, control, own_path
from proxy.insight.events import EventLog
from proxy.insight.metrics import Metrics

LABEL = "0123456789abcdef"
UUID = "3f0c6b1e-1111-4222-8333-444455556666"


class Registry:
    """One known conversation."""

    def view(self, now):
        return [{"label": LABEL, "turns": 3}, {"label": "f" * 16, "turns": 1}]

    def by_label(self, label):
        return object() if label == LABEL else None

    def __len__(self):
        return 2


class Routes:
    """A pool with one stock and one binding."""

    def __init__(self):
        self.dropped = []

    def view(self, now):
        return {
            "pools": [
                {"provider": "p", "model": "m", "fresh": 2, "stale": 1, "reserved": 0, "target": 3, "bound": 1},
            ],
            "pauses": [{"provider": "p", "model": "m", "reason": "limit", "until": now + 1}],
            "faults": [],
            "bindings": [{"conversation": LABEL, "id": UUID}, {"conversation": "f" * 16}],
        }

    def repin(self, conversation, now):
        self.dropped.append(conversation)
        return [Note("repin", {"conversation": LABEL})] if conversation in {None, LABEL} else []


def fake_daemon(**parts):
    """As much of a daemon as the pages read."""
    clock = Clock()
    events = EventLog(None, 1, 1, clock)
    daemon = SimpleNamespace(
        settings=Settings(),
        clock=clock,
        routes=Routes(),
        registry=Registry(),
        upstream=SimpleNamespace(open=3, idle=1),
        usage=SimpleNamespace(path=None),
        events=events,
        metrics=Metrics(),
        keeper=SimpleNamespace(problem=None),
        buffers=SimpleNamespace(used=10),
        in_flight={1, 2},
        problems={"state": "The state file cannot be written."},
        started_at=clock.wall_ms() - 5000,
        address="http://127.0.0.1:1",
        ready=True,
        stopping=False,
        refreshed=[],
    )
    daemon.refresh = lambda: daemon.refreshed.append(True)
    daemon.note = lambda note: events.emit(note.name, **note.facts)
    for name, value in parts.items():
        setattr(daemon, name, value)
    return daemon


@pytest.fixture
async def serve():
    """Serve a daemon's pages; the result asks one address and returns the answer with its body."""
    servers = []

    async def serve(daemon):
        async def handle(request):
            return await control(request, daemon)

        server = RawTestServer(handle)
        servers.append(server)
        await server.start_server()

        async def ask(path, method="GET"):
            async with aiohttp.ClientSession() as session, session.request(method, server.make_url(path)) as answer:
                return answer, await answer.read()

        return ask

    yield serve
    for server in servers:
        await server.close()


async def test_health_is_200_even_when_nothing_else_works(serve):
    """Liveness says only that the loop runs."""
    ask = await serve(SimpleNamespace(clock=Clock(), stopping=True, ready=False))
    answer, body = await ask("/-/health")
    assert answer.status == 200
    assert json.loads(body)["status"] == "ok"
    assert json.loads(body)["version"] == __version__


@pytest.mark.parametrize(
    ("parts", "status", "reason"),
    [({}, 200, None), ({"ready": False}, 503, "starting"), ({"stopping": True}, 503, "stopping")],
)
async def test_ready_says_why_not(serve, parts, status, reason):
    """A load balancer reads the status, a person the reason."""
    ask = await serve(fake_daemon(**parts))
    answer, body = await ask("/-/ready")
    assert answer.status == status
    assert json.loads(body) == {"ready": reason is None, "reason": reason}


async def test_status_shows_every_part(serve):
    """The keys are a contract."""
    daemon = fake_daemon()
    daemon.events.emit("request", conversation=LABEL, status=200)
    daemon.events.emit("take", conversation=LABEL)
    _, body = await (await serve(daemon))("/-/status")
    seen = json.loads(body)
    assert seen["version"] == __version__
    assert seen["mode"] == "route"
    assert seen["ready"] is True
    assert 5000 <= seen["uptime_ms"] < 60_000
    assert seen["pool"][0]["fresh"] == 2
    assert len(seen["bindings"]) == len(seen["conversations"]) == 2
    assert seen["upstream"] == {"base_url": "https://opencode.ai", "connections": 3, "idle": 1}
    assert seen["in_flight"] == 2
    assert seen["problems"] == {"state": "The state file cannot be written."}
    assert [request["status"] for request in seen["last_requests"]] == [200]
    assert seen["circuits"] is seen["admission"] is None


async def test_status_of_one_conversation_has_only_that(serve):
    """Its binding, its requests, itself."""
    daemon = fake_daemon()
    daemon.events.emit("request", conversation=LABEL)
    daemon.events.emit("request", conversation="f" * 16)
    _, body = await (await serve(daemon))(f"/-/status?conversation={LABEL}")
    seen = json.loads(body)
    assert [row["label"] for row in seen["conversations"]] == [LABEL]
    assert [row["conversation"] for row in seen["bindings"] + seen["last_requests"]] == [LABEL, LABEL]


async def test_status_survives_parts_that_are_missing_or_broken(serve):
    """A page for when something is wrong must come up then."""

    class Broken:
        def view(self, now):
            raise RuntimeError

    ask = await serve(fake_daemon(routes=Broken(), registry=Broken(), upstream=None, events=None, settings=None))
    answer, body = await ask("/-/status")
    seen = json.loads(body)
    assert answer.status == 200
    assert seen["pool"] is seen["bindings"] is seen["conversations"] is seen["mode"] is None
    ask = await serve(SimpleNamespace(clock=Clock()))
    answer, body = await ask("/-/status")
    assert answer.status == 200


async def test_no_full_id_is_shown_even_if_a_part_gives_one(serve):
    """The redactor is behind the page too."""
    _, body = await (await serve(fake_daemon()))("/-/status")
    assert UUID.encode() not in body


async def test_status_is_bounded(serve):
    """Two thousand conversations are not all listed, but counted."""

    class Many(Registry):
        def view(self, now):
            return [{"label": str(number)} for number in range(2000)]

        def __len__(self):
            return 2000

    _, body = await (await serve(fake_daemon(registry=Many())))("/-/status")
    seen = json.loads(body)
    assert len(seen["conversations"]) == 200
    assert seen["conversations_known"] == 2000


async def test_metrics_are_prometheus_text_with_gauges_of_now(serve):
    """What was counted, and what the daemon says when it is asked."""
    daemon = fake_daemon()
    daemon.metrics.count("errors", code="forbidden")
    answer, body = await (await serve(daemon))("/-/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(body.decode())
    seen = {(s.name, *sorted(s.labels.values())): s.value for family in families for s in family.samples}
    assert seen["ocpool_errors_total", "forbidden"] == 1
    assert seen["ocpool_pool_spares", "fresh", "m", "p"] == 2
    assert seen["ocpool_pool_target", "m", "p"] == 3
    assert seen["ocpool_pool_bindings", "m", "p"] == 1
    assert seen["ocpool_pool_pauses", "p"] == 1
    assert seen["ocpool_upstream_connections", "active"] == 2
    assert seen["ocpool_conversations",] == seen["ocpool_requests_in_flight",] == 2
    assert seen["ocpool_info", __version__] == seen["ocpool_ready",] == 1


async def test_metrics_come_even_from_a_daemon_in_pieces(serve):
    """Only what is known is shown."""
    answer, body = await (await serve(SimpleNamespace(clock=Clock(), metrics=Metrics())))("/-/metrics")
    assert answer.status == 200
    assert b"ocpool_info" in body


async def test_repin_drops_one_or_all_and_notes_it(serve):
    """The decision is in the event log like any other."""
    daemon = fake_daemon()
    ask = await serve(daemon)
    answer, body = await ask(f"/-/repin?conversation={LABEL}", "POST")
    assert (answer.status, json.loads(body)) == (200, {"conversation": LABEL, "repinned": 1})
    answer, body = await ask("/-/repin", "POST")
    assert json.loads(body)["repinned"] == 1
    assert daemon.routes.dropped == [LABEL, None]
    assert [event["event"] for event in daemon.events.last(5)] == ["repin", "repin"]


async def test_repin_of_nobody_is_404(serve):
    """A label that was mistyped must not look like success."""
    answer, body = await (await serve(fake_daemon()))("/-/repin?conversation=nobody", "POST")
    assert answer.status == 404
    assert json.loads(body)["error"]["code"] == "conversation_not_found"


async def test_refresh_asks_the_upkeep_for_a_cycle(serve):
    """202: it will; 503 where there is no upkeep."""
    daemon = fake_daemon()
    answer, _ = await (await serve(daemon))("/-/refresh", "POST")
    assert (answer.status, daemon.refreshed) == (202, [True])
    answer, _ = await (await serve(fake_daemon(refresh=None)))("/-/refresh", "POST")
    assert answer.status == 503


async def test_an_unknown_address_is_404_in_the_openai_shape(serve):
    """A client that was given a wrong base URL can show it."""
    answer, body = await (await serve(fake_daemon()))("/-/nothing?x=1")
    assert answer.status == 404
    assert answer.headers["Content-Type"] == "application/json"
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("path", list(PAGES))
async def test_a_wrong_method_is_405_and_says_which_is_right(serve, path):
    """What acts takes POST only, so no link and no image can act."""
    daemon = fake_daemon()
    ask = await serve(daemon)
    wrong = ["POST", "DELETE", "PUT", "OPTIONS"] if PAGES[path].method == "GET" else ["GET", "HEAD", "PUT"]
    for method in wrong:
        answer, _ = await ask(path, method)
        assert answer.status == 405
        assert answer.headers["Allow"] == ("GET, HEAD" if PAGES[path].method == "GET" else "POST")
    assert daemon.routes.dropped == daemon.refreshed == []


@pytest.mark.parametrize("path", [path for path, page in PAGES.items() if page.method == "GET"])
async def test_every_page_answers_head_and_is_never_stored(serve, path):
    """HEAD has the fields of GET and no body."""
    ask = await serve(fake_daemon())
    answer, body = await ask(path, "HEAD")
    assert (answer.status, body) == (200, b"")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_the_index_lists_what_is_there(serve):
    """Until there is a dashboard."""
    _, body = await (await serve(fake_daemon()))("/-/")
    assert {page["path"] for page in json.loads(body)["pages"]} == set(PAGES)


@pytest.mark.parametrize("path", ["/-/status", "/t/secret-token/-/status", "/t/secret-token/s/name/-/status"])
def test_the_token_before_an_address_is_no_part_of_it(path):
    """Clients that can only set a base URL put it there."""
    assert own_path(path) == "/-/status"


async def test_a_scrape_of_many_series_does_not_hold_up_the_loop(serve):
    """It is rendered on a thread."""
    daemon = fake_daemon()
    for number in range(150):
        for name in ("first_byte_seconds", "first_event_seconds", "gateway_upstream_seconds"):
            daemon.metrics.observe(name, number, provider="p", model=f"m{number}", source="spare")
    ask = await serve(daemon)
    await ask("/-/metrics")
    loop, longest = asyncio.get_running_loop(), []
    for _ in range(3):  # the machine that runs the tests is busy too: the best of three counts
        over, gaps = asyncio.Event(), []

        async def tick(over=over, gaps=gaps):
            while not over.is_set():
                began = loop.time()
                await asyncio.sleep(0.005)
                gaps.append(loop.time() - began)

        async with asyncio.TaskGroup() as group:
            group.create_task(tick())
            await ask("/-/metrics")
            over.set()
        longest.append(max(gaps))
    assert min(longest) < 0.15
