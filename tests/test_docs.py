"""The documents say what the code does, as far as that can be checked."""

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from config.keys import KEYS, sections
from pool.model import Blame, ProbeKind, Source
from pool.pauses import Reason
from pool.stores import schema
from proxy import errors, verdict
from proxy.cli.commands import COMMANDS
from proxy.control.routes import PAGES
from proxy.conversation.precedence import MARKS, NEVER_FIELDS, NEVER_PLACES, PRECEDENCE

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAPERS = [ROOT / "README.md", ROOT / "AGENTS.md", ROOT / "CHANGELOG.md", *DOCS]
NOTERS = {"Note", "note", "_note", "emit", "Noted"}
TOLD_ELSEWHERE = {Reason.FAULT, Reason.DISTURBED}  # pauses that are no ``pause`` event

papers = pytest.mark.parametrize("paper", PAPERS, ids=lambda path: path.name)


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def code_spans(written: str) -> list[str]:
    """What stands between single backticks, outside of blocks."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", written, flags=re.DOTALL | re.MULTILINE))


def rows(written: str) -> list[list[str]]:
    """The cells of every table row."""
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in written.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in cells]


def anchors(written: str) -> set[str]:
    """The names that a link may point at, made from headings as code hosts make them."""
    titles = re.findall(r"^#+ (.+)$", written, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _names(file: Path) -> Iterator[str]:
    """The event names in one module: first arguments of what makes events, and what the log says of itself."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node) in NOTERS and node.args:
            first = node.args[0]
            options = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
            yield from (o.value for o in options if isinstance(o, ast.Constant) and isinstance(o.value, str))
        if isinstance(node, ast.Dict) and file.name == "events.py":
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "event" and isinstance(value, ast.Constant):
                    yield value.value


@cache
def emitted() -> frozenset[str]:
    """Every event name in the code."""
    files = [*(ROOT / "pool").rglob("*.py"), *(ROOT / "proxy").rglob("*.py")]
    return frozenset(name for file in files for name in _names(file))


def described() -> dict[str, str]:
    """The events of the document, each with its section."""
    parts = re.split(r"^### `(.+)`$", text("docs/events.md"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_event_of_the_code_is_described_and_no_other():
    """One section an event; the scan must have found the usual ones."""
    assert {"request", "take", "retire", "started", "state_problem", "retired_elsewhere"} <= emitted()
    assert set(described()) == emitted()


@pytest.mark.parametrize("name", sorted(described()))
def test_every_event_has_an_example_of_its_own(name: str):
    """One JSON object a line, as the log has them."""
    blocks = re.findall(r"^```json\n(.*?)^```", described()[name], re.DOTALL | re.MULTILINE)
    events = [json.loads(line) for block in blocks for line in block.splitlines()]
    assert events
    for event in events:
        assert event["event"] == name
        assert list(event)[:2] == ["at", "event"]


def test_every_word_of_the_log_is_explained():
    """Verdicts, blames, routes, and what probes and pauses say of themselves."""
    section = described()
    said = set(code_spans(section["request"]))
    assert {row.verdict.kind for row in verdict.TABLE} <= said
    assert {*Blame, *Source} <= said
    assert set(ProbeKind) <= set(code_spans(section["probe"]))
    assert set(Reason) - TOLD_ELSEWHERE <= set(code_spans(section["pause"]))


def test_the_commands_of_the_readme_are_those_there_are():
    """In the table, in the same order."""
    named = [match[1] for row in rows(text("README.md")) if (match := re.match(r"`ocpool (\w+)", row[0]))]
    assert named == list(COMMANDS)


def test_the_readme_names_every_page_of_the_daemon():
    """But for the list of them."""
    for path in PAGES.keys() - {"/-/"}:
        assert f"`{path}`" in text("README.md") or f"`POST {path}`" in text("README.md"), path


@papers
def test_every_relative_link_leads_somewhere(paper: Path):
    """To a file, and to a heading in it."""
    for link in re.findall(r"\]\(([^)\s]+)\)", paper.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        there = (paper.parent / name).resolve() if name else paper
        assert there.is_file(), link
        assert not anchor or anchor in anchors(there.read_text(encoding="utf-8")), link


@papers
def test_no_document_speaks_of_how_it_came_about(paper: Path):
    """Issue numbers and working names mean nothing to a reader."""
    written = paper.read_text(encoding="utf-8")
    assert not re.search(r"#\d|\bissues? \d|\bseed [A-C]\b|/wor[k]/", written, re.IGNORECASE)


@papers
def test_every_setting_that_is_named_exists(paper: Path):
    """As ``section.key`` between backticks; a key may carry a value."""
    names = "|".join(sections())
    for span in code_spans(paper.read_text(encoding="utf-8")):
        found = re.match(rf"({names})\.([a-z_]+)( = .+)?$", span)
        if found and f"{found[1]}.{found[2]}" not in {"state.json"}:
            assert f"{found[1]}.{found[2]}" in KEYS, span


@papers
def test_every_file_and_test_that_is_named_exists(paper: Path):
    """Paths from the root of the repository, and tests by function and file."""
    written = paper.read_text(encoding="utf-8")
    spans = code_spans(written)
    for span in spans:
        if re.fullmatch(r"(config|pool|proxy|tests|docs|systemd)/[\w/]*[\w.]*", span):
            assert (ROOT / span).exists(), span
    for function, file in re.findall(r"`(test_\w+)` in `(tests/[\w/]+\.py)`", written):
        assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8"), function


def test_every_rule_of_the_relay_has_its_test():
    """25 of them, each with a file named after it."""
    ruled = [row for row in rows(text("docs/relay.md")) if re.fullmatch(r"\d\d?", row[0])]
    assert [int(row[0]) for row in ruled] == list(range(1, 26))
    files = sorted(path.name for path in (ROOT / "tests/e2e").glob("test_rule_*.py"))
    assert [re.fullmatch(r"`tests/e2e/(test_rule_\w+\.py)`", row[3])[1] for row in ruled] == files


def test_every_error_of_our_own_is_listed():
    """With its status."""
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.ProxyError)]
    listed = {(row[0], row[1]) for row in rows(text("docs/relay.md")) if re.fullmatch(r"[45]\d\d", row[0])}
    assert listed == {(str(kind.status), f"`{kind.code}`") for kind in kinds}


def test_every_way_of_not_reaching_the_gateway_has_its_remedy():
    """Each code of ours that speaks of the upstream, but for the one that stands for the rest."""
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.UpstreamError)
    ]
    codes = {kind.code for kind in kinds} - {errors.UpstreamError.code}
    assert codes <= set(code_spans(text("docs/troubleshooting.md")))


def test_every_reason_for_not_probing_has_its_remedy():
    assert {reason.value for reason in Reason} <= set(code_spans(text("docs/troubleshooting.md")))


def test_the_readme_has_what_a_newcomer_looks_for():
    """By its headings; each of the other documents is linked from it."""
    wanted = {"why", "quick-start", "clients", "how-it-decides", "settings", "tuning", "limits", "manners", "security"}
    assert wanted | {"why-a-proxy-and-not-a-plugin", "when-something-surprises-you"} <= anchors(text("README.md"))
    assert [path.name for path in DOCS if f"(docs/{path.name}" not in text("README.md")] == []


def test_the_table_of_signals_is_that_of_the_code():
    """Row by row; what differs shows the line as it should be."""
    written = text("docs/conversations.md")
    between = written.partition("<!-- precedence:begin -->")[2].partition("<!-- precedence:end -->")[0]
    lines = ["| rank | class | where | signals |", "|---|---|---|---|"]
    for row in PRECEDENCE:
        signals = ", ".join(f"`{name}`" for name in row.names)
        lines.append(f"| {row.rank} | {row.kind} | {row.where} | {signals} |")
    assert between.strip().splitlines() == lines


def test_marks_and_what_is_never_an_identity_are_named():
    """Every one of them."""
    said = set(code_spans(text("docs/conversations.md")))
    assert {name for row in MARKS for name in row.names} <= said
    assert said >= NEVER_FIELDS
    assert said >= NEVER_PLACES


def test_the_example_of_the_state_file_is_one():
    """It is read without a loss, and every key that may be written is in it or explained."""
    blocks = re.findall(r"^```json\n(.*?)^```", text("docs/design.md"), re.DOTALL | re.MULTILINE)
    document = json.loads(blocks[0])
    assert schema.is_wellformed(document)
    assert all(schema.read_spare(raw) for raw in document["entries"])
    assert all(schema.read_reserved(raw) for raw in document["reserved"])
    for key, raw in document["bindings"].items():
        binding = schema.read_binding(key, raw)
        assert schema.write_binding(binding, {}) == raw
        assert set(schema.OPTIONAL) <= raw.keys()
