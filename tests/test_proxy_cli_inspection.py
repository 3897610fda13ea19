"""The state file as `ocpool inspect` shows it."""

import json
import time

import pytest

from pool.ids import short
from proxy.cli.commands import run

SPARE = "3f0c6b1e-1111-4222-8333-444455556666"
ROUTED = "7d1a90c4-1111-4222-8333-444455556666"
LABEL = "0123456789abcdef"


def document(**changes):
    """A state file as the extension and ocpool write it, just now."""
    NOW = int(time.time() * 1000)
    return {
        "version": 1,
        "entries": [
            {"id": SPARE, "provider": "opencode-go", "model": "kimi-k3", "upstreamMs": 941, "verifiedAt": NOW - 60_000, "createdAt": NOW},
            {"id": "old", "provider": "opencode-go", "model": "kimi-k3", "upstreamMs": 900, "verifiedAt": NOW - 10**9, "createdAt": 1},
            {"id": "ahead", "provider": "opencode-go", "model": "kimi-k3", "upstreamMs": 900, "verifiedAt": NOW + 10**9, "createdAt": 1},
        ],
        "reserved": [{"id": "held", "provider": "opencode-go", "model": "kimi-k3", "upstreamMs": 1, "verifiedAt": NOW, "owner": "box:17", "reservedAt": NOW}],
        "bindings": {
            f"{LABEL}::opencode-go::kimi-k3": {
                "routedId": ROUTED, "provider": "opencode-go", "model": "kimi-k3", "boundAt": NOW - 120_000, "lastSeenAt": NOW - 1000, "failures": 1,
            },
            "01a1b54b-client-session::opencode-go::kimi-k3": {
                "routedId": "digest:abcdef0123456789", "provider": "opencode-go", "model": "kimi-k3", "boundAt": NOW, "lastSeenAt": NOW - 2000,
            },
        },
        **changes,
    }  # fmt: skip


@pytest.fixture
def path(settled_here):
    return settled_here / "state.json"


def test_spares_and_bindings_are_shown_with_their_ages_and_no_full_id(path, capsys):
    """Digests instead of ids, a conversation of the extension's too."""
    path.write_text(json.dumps(document()))
    assert run(["inspect"]) == 0
    said = capsys.readouterr().out
    for text in (short(SPARE), short(ROUTED), "abcdef01", LABEL, "941 ms", "in the future", "box:17", "2 min"):
        assert text in said
    for secret in (SPARE, ROUTED, "01a1b54b-client-session"):
        assert secret not in said


def test_as_json_every_row_says_whether_it_is_fresh(path, capsys):
    """Verified within pool.ttl_ms, and not in the future."""
    path.write_text(json.dumps(document()))
    assert run(["inspect", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    fresh = {row["id"]: row["fresh"] for row in seen["spares"]}
    assert fresh == {short(SPARE): True, short("old"): False, short("ahead"): False, short("held"): True}
    assert [row["idle_ms"] < 60_000 for row in seen["bindings"]] == [True, True]
    assert seen["version"] == 1


def learned(**changes):
    now = int(time.time() * 1000)
    routing = {
        "opencode-go": {
            "kimi-k3": {"regime": "sticky", "score": 4.1, "compared": 12, "at": now - 120_000},
            "glm-5.3": {"regime": "balanced", "score": 0.0, "compared": 0, "at": now - 7 * 3_600_000},
            "odd": {"regime": "upside down", "score": 1, "at": 1},
        },
        "opencode": 7,
    }
    probes = {"opencode-go": [now - 60_000, now - 1_000, now - 4_000_000, "x"], "opencode": [1], "other": None}
    return document(routing=routing, probes=probes, **changes)


def test_what_was_learned_of_routing_is_shown_and_whether_it_is_still_believed(path, capsys):
    """By model, with its confidence; for six hours, or nothing."""
    path.write_text(json.dumps(learned()))
    assert run(["inspect"]) == 0
    said = capsys.readouterr()
    lines = [line.split() for line in said.out.splitlines()]
    assert ["opencode-go", "kimi-k3", "sticky", "98%", "12", "2", "min", "yes"] in lines
    assert ["opencode-go", "glm-5.3", "balanced", "-", "0", "7", "h", "no"] in lines
    assert "1 of its entries" in said.err
    assert ["opencode-go", "2"] in lines  # probes of the last hour
    assert run(["inspect", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert [(row["model"], row["regime"], row["holds"]) for row in seen["routing"]] == [
        ("glm-5.3", "balanced", False),
        ("kimi-k3", "sticky", True),
    ]
    assert seen["probes"] == [{"provider": "opencode-go", "sent": 2}]


@pytest.mark.parametrize("odd", [None, 3, [], {"opencode-go": []}, {"opencode-go": {"kimi-k3": [1]}}])
def test_a_file_that_tells_nothing_readable_of_routing(path, capsys, odd):
    """The rest is shown."""
    path.write_text(json.dumps(document(routing=odd, probes=odd)))
    assert run(["inspect"]) == 0
    assert short(SPARE) in capsys.readouterr().out


def test_nothing_is_written_and_no_lock_is_taken(path, capsys):
    """Read-only, also where a lock is held by somebody."""
    path.write_text(json.dumps(document()))
    path.chmod(0o400)
    before = (path.stat().st_mtime_ns, path.read_bytes())
    run(["inspect"])
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before
    assert [entry.name for entry in path.parent.iterdir()] == ["state.json"]


def test_entries_that_are_none_are_skipped_and_said(path, capsys):
    """The rest is shown."""
    entries = [*document()["entries"], 7, {"id": 3}]
    path.write_text(json.dumps(document(entries=entries)))
    assert run(["inspect"]) == 0
    said = capsys.readouterr()
    assert short(SPARE) in said.out
    assert "2 of its entries" in said.err


def test_a_newer_version_is_shown_as_far_as_it_is_understood(path, capsys):
    """And said so."""
    path.write_text(json.dumps(document(version=7, entries={"new": "shape"})))
    assert run(["inspect"]) == 0
    said = capsys.readouterr()
    assert "newer" in said.err
    assert short(ROUTED) in said.out


def test_an_empty_pool_says_so(path, capsys):
    """Not a blank screen."""
    path.write_text('{"version": 1, "entries": [], "bindings": {}}')
    assert run(["inspect"]) == 0
    assert "No spares and no bindings." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (None, "there is no state file"),
        (b"", "is empty"),
        (b'{"version":1,"entr', "corrupt"),
        (b"\x00\xff binary", "corrupt"),
        (b'{"hello": 1}', "corrupt"),
        (b'{"version": 1, "entries": 3}', "corrupt"),
        ("folder", "cannot be read: Is a directory"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line_and_exit_code_1(path, capsys, data, reason):
    """Missing, empty, half written, binary, of another shape, a folder."""
    if data == "folder":
        path.mkdir()
    elif data is not None:
        path.write_bytes(data)
    assert run(["inspect"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert reason in said.err
    assert len(said.err.splitlines()) == 1
