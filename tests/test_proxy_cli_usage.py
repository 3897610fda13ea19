"""`ocpool usage`, as a user sees it."""

import json
import sqlite3
from contextlib import closing

import pytest

from pool.clock import Clock
from proxy.cli.commands import run
from proxy.insight import usage_file
from proxy.insight.usage_file import Key, Sums, day_of

NOW = Clock().wall_ms()
TODAY, LAST_WEEK = day_of(NOW), day_of(NOW - 7 * 86_400_000)


@pytest.fixture
def path(settled_here):
    return settled_here / "usage.sqlite3"


@pytest.fixture
def counted(path):
    rows = {
        Key(TODAY, "aaaaaaaa", "opencode-go", "kimi-k3", "c1"): Sums(
            turns=3,
            side=1,
            partial=1,
            unknown=1,
            input=3000,
            told=3000,
            cached=1800,
            output=300,
            cost=0.00411,
            saved=0.0049,
        ),
        Key(LAST_WEEK, "bbbbbbbb", "opencode", "glm-5.3", "c2"): Sums(turns=1, input=1000, output=5, cost=1.5),
        Key(TODAY, "bbbbbbbb", "opencode", "mystery", ""): Sums(turns=1, unpriced=1, input=7, output=1),
    }
    usage_file.add(path, rows)
    return path


def test_by_model_with_a_sum_and_what_the_numbers_leave_out(counted, capsys):
    assert run(["usage"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    kimi = next(line for line in lines if "kimi-k3" in line)
    assert kimi.split() == [
        "opencode-go",
        "kimi-k3",
        "3",
        "1",
        "1",
        "1",
        "3000",
        "1800",
        "60%",
        "300",
        "0.004110",
        "0.004900",
    ]
    assert next(line for line in lines if "mystery" in line).split()[-2:] == ["-", "-"]
    assert any(line.split()[:1] == ["all"] and "1.5041" in line for line in lines)
    assert "1 answers reported no tokens" in out
    assert "without a known price" in out


def test_what_probes_cost_is_said_where_there_were_any(counted, capsys):
    assert run(["usage"]) == 0
    assert "of ocpool's own" not in capsys.readouterr().out
    usage_file.add(
        counted, {Key(TODAY, "", "opencode-go", "kimi-k3", ""): Sums(probes=3, probe_tokens=31, probe_cost=0.00012)}
    )
    assert run(["usage"]) == 0
    out = capsys.readouterr().out
    assert next(line for line in out.splitlines() if "kimi-k3" in line).split()[-1] == "3"
    assert "3 probes of ocpool's own cost 31 tokens (about $0.000120); no other column has them." in out


@pytest.mark.parametrize(
    ("by", "first"),
    [("day", LAST_WEEK), ("key", "aaaaaaaa"), ("conversation", "c1"), ("provider", "opencode-go")],
)
def test_by_other_things(counted, capsys, by, first):
    assert run(["usage", "--by", by, "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert seen["path"] == str(counted)
    assert seen["rows"][0][by] == first
    assert sum(row["input"] for row in seen["rows"]) == seen["total"]["input"] == 4007


def test_since_takes_whole_days(counted, capsys):
    assert run(["usage", "--since", "1d", "--json"]) == 0
    seen = json.loads(capsys.readouterr().out)
    assert {row["model"] for row in seen["rows"]} == {"kimi-k3", "mystery"}
    assert run(["usage", "--since", "later"]) == 2


def test_nothing_yet(path, capsys):
    assert run(["usage"]) == 1
    assert "nothing was counted yet" in capsys.readouterr().err
    usage_file.add(path, {})
    assert run(["usage"]) == 0
    assert "Nothing was counted." in capsys.readouterr().out


def test_a_file_that_is_no_database(path, capsys):
    path.write_bytes(b"x" * 5000)
    assert run(["usage"]) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_it_only_reads(counted):
    before = counted.stat()
    assert run(["usage"]) == 0
    after = counted.stat()
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    with closing(sqlite3.connect(counted)) as file:
        assert file.execute("SELECT count(*) FROM usage").fetchone() == (3,)
