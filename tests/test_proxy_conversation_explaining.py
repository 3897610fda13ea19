"""Why a request belongs where it does: offline from the archive, and for a live conversation."""

import json

from click.testing import CliRunner

from pool.clock import Clock
from proxy.archiving import Archiving
from proxy.cli.explaining import explain
from proxy.conversation.archive import Archive
from proxy.conversation.evidence import Evidence
from proxy.conversation.explaining import steps_of
from proxy.conversation.scopes import load_secret, scope_of
from tests.fakes.talk import Talk, assistant, label, limits, user

ASK = "Please look at the parser and find out why it fails on empty input."
SAID = "It splits an empty list in the second step, which nobody expected."
KEY = "Bearer sk-explain-0123456789"


def test_a_live_conversation_says_how_it_was_recognised():
    """By rule, with what else was considered, and no word of what was said."""
    talk = Talk()
    talk.turn([user(ASK)], SAID)
    second = talk.turn([user(ASK), assistant(SAID), user("Fix it.")], "Fixed.")
    (line,) = steps_of(talk.evidence, label(second))
    assert line["messages"] == 3
    assert line["steps"] == [{"rule": "answer", "found": "continues its 1 messages", "conversation": label(second)}]
    assert not [word for word in ("parser", "splits", "Fix") if word in json.dumps(line)]


async def test_a_request_is_explained_from_the_archive(tmp_path):
    """As the daemon would decide it, for the caller whose key is given."""
    state = tmp_path / "state.json"
    secret, _ = load_secret(tmp_path / "state.json.key", None)
    talk = Talk(evidence=Evidence(limits(), secret), now=Clock().wall_ms() - 60_000)
    scope = scope_of(None, [(b"authorization", KEY.encode())], secret)
    first = talk.turn([user(ASK)], SAID, scope=scope)
    keeper = Archiving(talk.evidence, Archive(tmp_path / "state.json.conversations"), lambda: talk.now, lambda _: None)
    await keeper.open()
    await keeper.close()
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"model": "m", "messages": [user(ASK), assistant(SAID), user("Fix it.")]}))
    options = [str(request), "--set", f"state.path={state}", "--json"]
    runner = CliRunner()
    told = json.loads(runner.invoke(explain, [*options, "--header", f"authorization: {KEY}"]).stdout)
    assert (told["conversation"], told["match"]) == (label(first), "answer")
    assert [step["rule"] for step in told["steps"]] == ["ids", "content", "answer"]
    stranger = json.loads(runner.invoke(explain, options).stdout)
    assert (stranger["conversation"], stranger["match"]) == (None, "new")
    request.write_text(json.dumps({"headers": {"x-session-id": "a-session-of-its-own"}, "body": {"messages": []}}))
    named = json.loads(runner.invoke(explain, options).stdout)
    assert named["match"] == "owner:x-session-id"
    request.write_bytes(b"no json")
    plain = runner.invoke(explain, options[:-1])
    assert plain.exit_code == 0
    assert "to a new conversation" in plain.stdout


def test_without_a_secret_there_is_nothing_to_tell(tmp_path):
    """And none is made."""
    request = tmp_path / "request.json"
    request.write_text("{}")
    told = CliRunner().invoke(explain, [str(request), "--set", f"state.path={tmp_path / 'state.json'}"])
    assert told.exit_code == 1
    assert "no daemon has run" in told.stderr
    assert list(tmp_path.iterdir()) == [request]
