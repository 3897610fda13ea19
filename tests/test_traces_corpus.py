"""What the traces hold: enough of everything, the same from the same seed, and nothing of a session once ids are removed."""

import ast
import json
import sys
from functools import cache
from itertools import groupby
from pathlib import Path

import pytest

from tests.traces import corpus, samples, scenarios
from tests.traces.clients.table import CLIENTS
from tests.traces.report import ROWS, played
from tests.traces.wire import names_session, wire

HERE = Path(corpus.__file__).parent
GENERATOR = [path for path in HERE.rglob("*.py") if path.name not in {"resolver.py", "sockets.py"}]


pytestmark = pytest.mark.xdist_group("traces-corpus")  # one process, so that a row is made once


class Nobody:
    def begin(self, sent, now):
        return "", "", None

    def end(self, token, reply, now):
        pass


@cache
def told(name):
    return played(name, Nobody)[0]


def requests(name):
    return [one.request for one in told(name)]


def bodies(name, seed):
    return [wire(one.request, with_ids=True).chunks for one in played(name, Nobody, seed)[0]]


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_has_twenty_conversations_and_more(name):
    assert len({request.truth for request in requests(name)}) >= 20


@pytest.mark.parametrize("name", [name for name in ROWS if name not in CLIENTS])
def test_every_case_has_five_conversations_and_more(name):
    assert len({request.truth for request in requests(name)}) >= 5


def test_the_scenarios_are_all_there():
    assert len(scenarios.case.rows) == 24


@pytest.mark.parametrize("name", CLIENTS)
def test_four_conversations_with_one_opener_are_live_at_once(name):
    """Of one credential; each begins before any of the others has its second turn."""
    mine = [one for one in told(name) if one.request.key == corpus.KEY]
    twins = [f"{name}-{number}" for number in range(corpus.TWINS - 1)]
    begun = [min(one.at for one in mine if one.request.truth == twin) for twin in twins]
    ended = [max(one.at for one in mine if one.request.truth == twin) for twin in twins]
    assert len(twins) >= 4
    assert max(begun) < min(ended)


@pytest.mark.parametrize("name", ["opencode", "claude-code", "aider"])
def test_the_same_seed_makes_the_same_bytes(name):
    assert bodies(name, 1) == bodies(name, 1)
    assert bodies(name, 1) != bodies(name, 2)


@pytest.mark.parametrize("name", ROWS)
def test_nothing_of_a_session_is_left_when_ids_are_removed(name):
    for request in requests(name):
        sent = wire(request, with_ids=False)
        data = b"".join((*sent.chunks, sent.target.encode(), *(name + value for name, value in sent.fields)))
        assert not [value for value in names_session(request) if value.encode() in data]
        assert not [field for field, _ in request.id_fields if field.lower() in str(sent.fields).lower()]


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_names_its_session_where_ids_are_present(name):
    bare = [request for request in requests(name) if not names_session(request)]
    assert all(request.loose for request in bare)


@pytest.mark.parametrize("name", CLIENTS)
def test_ids_part_what_belongs_apart(name):
    """A value is shared by two conversations only where the client shares it: with sub-agents, and after a fork."""
    owners: dict[tuple, set[str]] = {}
    for request in requests(name):
        if not request.loose:
            said = (*request.id_fields, *sorted(request.id_body.items(), key=str), request.id_name)
            owners.setdefault(tuple(map(str, said)), set()).add(request.truth.partition("/agent-")[0])
    assert all(len(found) == 1 for found in owners.values())


@pytest.mark.parametrize("path", GENERATOR, ids=lambda path: path.stem)
def test_the_traces_share_no_code_with_what_they_judge(path):
    names = {
        name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
    }
    if path.name == "__main__.py":
        names.discard("tests.traces.resolver")
    foreign = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"tests", ""}
    assert not [name for name in foreign if name in {"proxy", "pool", "config", "orjson"}]


@pytest.mark.parametrize("name", CLIENTS)
def test_the_samples_are_what_the_generator_makes(name):
    """`python -m tests.traces.samples` writes them."""
    assert (samples.FOLDER / f"{name}.json").read_text() == samples.sample(name)


def test_the_samples_are_small_and_of_every_client():
    files = sorted(samples.FOLDER.glob("*.json"))
    assert {path.stem for path in files} == set(CLIENTS)
    assert max(path.stat().st_size for path in files) < 40_000
    for path in files:
        kinds = [kind for kind, _ in groupby(entry["kind"] for entry in json.loads(path.read_text()))]
        assert "turn" in kinds
