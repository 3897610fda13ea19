"""What the person who runs the daemon reads."""

import io
import json
import logging
import os
import stat
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import pytest

from proxy.insight.redact import MASK, Redactor, digest
from proxy.logs import Log, context

ROOT = Path(__file__).parents[1]
UUID = "3f0c6b1e-1111-4222-8333-444455556666"


@pytest.fixture
def opened(tmp_path):
    """A log into a file, and a function that closes it and says what is in it."""
    log = Log()

    def read(**kinds):
        log.ready()
        log.close()
        return [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]

    log.configure(path=tmp_path / "log", level="debug", redactor=Redactor(["planted-secret"]))
    yield log, read
    log.close()


def run(code, **env):
    """A process that logs; its stderr."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, **env},
        stderr=subprocess.PIPE,
        check=True,
        timeout=60,
    ).stderr.decode()


def test_a_line_is_json_with_time_level_and_event_first(opened):
    """One object a line, the facts as given."""
    log, read = opened
    log.warning("the state file cannot be written", reason="No space left on device", tries=3)
    (line,) = read()
    assert list(line) == ["timestamp", "level", "event", "reason", "tries"]
    assert line["level"] == "warning"
    assert line["timestamp"].endswith("Z")


def test_every_level_says_its_name_and_lower_ones_are_left_out(tmp_path):
    """The level can change while the log is open."""
    log = Log()
    log.configure(path=tmp_path / "log", level="warning")
    for level in ("debug", "info", "warning", "error"):
        getattr(log, level)(f"it is {level}")
    log.configure(level="debug")
    log.debug("now")
    log.ready()
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [(line["level"], line["event"]) for line in lines] == [
        ("warning", "it is warning"),
        ("error", "it is error"),
        ("debug", "now"),
    ]


def test_what_is_said_before_the_log_opens_is_not_lost(tmp_path):
    """Settings are read before anybody knows where the log goes."""
    log = Log()
    log.warning("early")
    log.configure(path=tmp_path / "log")
    log.ready()
    log.close()
    assert json.loads((tmp_path / "log").read_text())["event"] == "early"


def test_secrets_and_ids_are_masked_in_words_facts_and_tracebacks(opened):
    """The last line of defence is behind everything that is written."""
    log, read = opened
    try:
        raise ValueError(f"Authorization: Bearer abcdef123456 for {UUID}")
    except ValueError as error:
        log.error("refused planted-secret", exc_info=error, token="xyz", headers={"x-api-key": "xyz"}, session=UUID)
    text = json.dumps(read())
    for secret in ("abcdef123456", "planted-secret", "xyz", UUID):
        assert secret not in text
    assert digest(UUID) in text
    assert "ValueError" in text
    assert MASK in text


def test_the_context_of_a_task_is_in_each_of_its_lines(opened):
    """Facts set once, such as the request's number."""
    log, read = opened
    token = context.set({"request": 7})
    log.info("inside")
    context.reset(token)
    log.info("outside")
    inside, outside = read()
    assert inside["request"] == 7
    assert "request" not in outside


def test_libraries_and_warnings_speak_through_the_same_log(opened):
    """aiohttp's and asyncio's own messages, tracebacks and Python's warnings; nothing below warning."""
    log, read = opened
    logging.getLogger("aiohttp.server").info("chatter")
    logging.getLogger("aiohttp.server").warning("odd %s", "request")
    try:
        raise KeyError("lost")
    except KeyError:
        logging.getLogger("asyncio").exception("Task died")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old thing", stacklevel=1)
    lines = read()
    assert [line["event"].split(" (")[0] for line in lines[:2]] == ["odd request", "Task died"]
    assert [line["logger"] for line in lines] == ["aiohttp.server", "asyncio", "py.warnings"]
    assert "KeyError" in lines[1]["exception"]
    assert logging.getLogger().handlers == [
        h for h in logging.getLogger().handlers if type(h).__name__ != "_FromStdlib"
    ]


def test_facts_that_are_no_json_do_not_cost_the_line(opened):
    """Surrogates, bytes, objects, numbers without end."""
    log, read = opened
    log.info("odd \ud800", raw=b"\xff", thing=object(), number=2**80)
    assert read()[0]["number"] == str(2**80)


def test_the_file_is_private_and_rotated(tmp_path, monkeypatch):
    """0600 in a 0700 folder, also what was renamed."""
    monkeypatch.setattr("proxy.logs.MAX_BYTES", 200)
    log = Log()
    log.configure(path=tmp_path / "logs" / "log")
    log.ready()
    for number in range(300):
        log.info("line", number=number)
    log.close()
    files = list((tmp_path / "logs").iterdir())
    assert len(files) > 1
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "logs").stat().st_mode) == 0o700


def test_stderr_gets_json_unless_a_person_looks():
    """auto on a pipe is JSON; what is said before readiness appears when the process ends, at the latest."""
    said = run(
        """
        from proxy.logs import log
        log.configure()
        log.info("one", model="k3")
        """
    )
    assert json.loads(said)["model"] == "k3"


def test_the_console_form_has_no_control_characters_from_outside():
    """A client cannot move our cursor or forge a line."""
    said = run(
        r"""
        from proxy.logs import log
        log.configure(form="console")
        log.info("hello", path="\x1b[2Jx\nforged")
        """,
        NO_COLOR="1",
    )
    assert "hello" in said
    assert "\x1b" not in said
    assert len(said.splitlines()) == 1


def test_a_log_file_that_cannot_be_written_is_said_on_stderr_and_the_lines_are_there(tmp_path):
    """Nothing is lost because a path is wrong."""
    (tmp_path / "log").mkdir()
    said = run(
        f"""
        from pathlib import Path
        from proxy.logs import log
        log.configure(path=Path({str(tmp_path / "log")!r}))
        log.ready()
        log.info("kept")
        """
    )
    first, second = said.splitlines()
    assert "cannot be written (Is a directory)" in first
    assert json.loads(second)["event"] == "kept"


def test_a_blocked_pipe_holds_up_nobody_and_not_the_end_either():
    """`ocpool serve 2>&1 | less`, and nobody reads on."""
    code = """
        import time
        from proxy.logs import log
        log.configure()
        log.ready()
        began = time.monotonic()
        for number in range(20_000):
            log.info("x" * 100, number=number)
        took = time.monotonic() - began
        print(took, log.dropped > 0, flush=True)
        """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        took, dropped = process.stdout.readline().split()
        began = time.monotonic()
        assert process.wait(20) == 0
        assert time.monotonic() - began < 10
        assert float(took) < 3
        assert dropped == b"True"


def test_structlog_is_imported_by_the_first_line_after_readiness_and_not_by_us():
    """It costs a fifth of a second, which no start pays."""
    run(
        """
        import sys, time
        from proxy.logs import log
        log.configure()
        log.info("early")
        time.sleep(0.2)
        assert "structlog" not in sys.modules
        log.ready()
        for _ in range(500):
            if "structlog" in sys.modules:
                break
            time.sleep(0.02)
        else:
            raise SystemExit("never imported")
        """
    )


def test_a_process_without_stderr_still_runs(monkeypatch):
    """pythonw and some supervisors give none."""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    log = Log()
    log.configure(form="auto")
    log.close()
