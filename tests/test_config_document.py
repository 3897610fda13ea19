"""Settings from the TOML file."""

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.document import MAX_BYTES, is_exposed
from config.load import SettingsError, load

HOME = {"HOME": "/nonexistent"}


@pytest.fixture
def written(tmp_path):
    """A function that writes a settings file and returns its path."""

    def write(content):
        path = tmp_path / "ocpool.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        path.chmod(0o600)
        return path

    return write


def problems(path):
    """The refusals of a file, without its name."""
    with pytest.raises(SettingsError) as error:
        load(path, environ=HOME)
    return [problem.replace(str(path), "FILE") for problem in error.value.problems]


def test_a_file_is_read_and_named_as_the_origin(written):
    """Sections, models and a byte order mark."""
    path = written(b'\xef\xbb\xbf[pool]\nsize = 4\n[models."kimi-k2.6"]\ntimeout_ms = 5000\n')
    loaded = load(path, environ=HOME)
    assert loaded.settings.pool.size == 4
    assert loaded.settings.probe_for("kimi-k2.6").timeout_ms == 5000
    assert loaded.file == path
    assert loaded.origins["pool.size"] == f"file {path}"
    assert loaded.origins['models."kimi-k2.6".timeout_ms'] == f"file {path}"
    assert loaded.origins["pool.ttl_ms"] == "default"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            "[pool]\nsize 3\n",
            "file FILE: not valid TOML: Expected '=' after a key in a key/value pair (at line 2, column 6)",
        ),
        ("[pool]\nsize = 3 # \x00\n", "(at line 2, column 12)"),
        (b"[pool]\nsize = 3\n# \xff\n", "file FILE: is not UTF-8 (at line 3)"),
        ("a = " + "[" * 5000, "file FILE: not valid TOML: "),
        ("#" * (MAX_BYTES + 1), f"file FILE: is larger than {MAX_BYTES} bytes"),
        ("port = 1\n", "file FILE: port: must be inside a section; the nearest is listen.port"),
        ("pool = 1\n", "file FILE: pool: must be a table, [pool]"),
        ("[pol]\nsize = 1\nttl_ms = 1\n", "file FILE: [pol]: no such section; the nearest is [pool]"),
        ("[pol]\n", "file FILE: [pol]: no such section; the nearest is [pool]"),
        ("models = 1\n", "file FILE: models: must be a table, [models]"),
        ("_env_file = 1\n", "file FILE: _env_file: must be inside a section; the nearest is "),
        ("[pool]\nsise = 1\n", "file FILE: pool.sise: no such setting; the nearest is pool.size"),
        ("[models]\nm = 1\n", 'file FILE: models."m": must be a table, [models."m"]'),
        ("[models.m]\nsize = 1\n", 'file FILE: models."m".size: no such setting; the nearest is models."m".'),
        ("[log]\npath = 3\n", "log.path = 3 (file FILE): must be text"),
        ("[routing]\nmode = 3\n", "routing.mode = 3 (file FILE): must be one of route, observe, off"),
        ("[pool]\nsize = '3'\n", "pool.size = '3' (file FILE): must be a whole number from 1 to 16"),
        ("[pool]\nsize = true\n", "pool.size = True (file FILE): must be a whole number from 1 to 16"),
        ("[headers]\nexpose = 1\n", "headers.expose = 1 (file FILE): must be true or false"),
        ("[listen]\ntoken = 12345\n", "listen.token (file FILE): must be text"),
        ("[listen.tokens]\nalice = 12345\n", "listen.tokens (file FILE): must be text"),
        ("[listen]\nhost = 2026-11-30\n", "listen.host = datetime.date(2026, 11, 30) (file FILE): must be text"),
        ("[[pool]]\nsize = 1\n", "file FILE: pool: must be a table, [pool]"),
    ],
)
def test_a_file_that_says_nothing_sensible_is_refused_with_its_place(written, content, problem):
    """With the line where there is one, else the nearest name; one line for each thing."""
    (told,) = problems(written(content))
    assert problem in told


def test_a_named_file_must_be_there(tmp_path):
    """A typo in --config is no empty file."""
    missing = tmp_path / "no.toml"
    assert problems(missing) == ["file FILE: does not exist"]
    assert problems(missing / "below") == ["file FILE: does not exist"]
    assert problems(tmp_path) == ["file FILE: Is a directory"]


def test_a_name_that_no_file_can_have_is_a_refusal():
    """Control characters in the name of a file do not crash the start."""
    with pytest.raises(SettingsError):
        load(Path("a\0b"), environ=HOME)


def test_the_default_file_need_not_be_there(tmp_path):
    """It is looked for in the XDG folder."""
    loaded = load(environ={"XDG_CONFIG_HOME": str(tmp_path)})
    assert loaded.file is None
    assert loaded.warnings == []
    (tmp_path / "ocpool").mkdir()
    (tmp_path / "ocpool" / "config.toml").write_text("[pool]\nsize = 5\n")
    loaded = load(environ={"XDG_CONFIG_HOME": str(tmp_path)})
    assert loaded.settings.pool.size == 5
    assert loaded.file == tmp_path / "ocpool" / "config.toml"


def test_a_default_file_out_of_reach_is_warned_of(tmp_path, monkeypatch):
    """Under sudo, HOME may be another's: that stops nobody from starting."""
    folder = tmp_path / "ocpool"
    folder.symlink_to(folder)  # too many levels of symbolic links, for root as well
    loaded = load(environ={"XDG_CONFIG_HOME": str(tmp_path)})
    (warning,) = loaded.warnings
    assert "cannot be looked at" in warning
    assert str(folder) in warning


def test_a_default_file_that_is_there_and_cannot_be_read_is_refused(tmp_path):
    """Starting without it would not be what the user asked for."""
    (tmp_path / "ocpool" / "config.toml").mkdir(parents=True)
    with pytest.raises(SettingsError, match="Is a directory"):
        load(environ={"XDG_CONFIG_HOME": str(tmp_path)})


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o640, True), (0o644, True)])
def test_a_secret_in_a_file_that_others_can_read_is_warned_of(written, mode, warned):
    """A key in a 0644 file is a leak."""
    path = written("[probe]\napi_key = 'canary'\n")
    path.chmod(mode)
    warnings = load(path, environ=HOME).warnings
    assert bool(warnings) is warned
    assert "canary" not in str(warnings)


def test_a_file_without_a_secret_may_be_read_by_all(written):
    """Nothing to hide, nothing to say."""
    path = written("[pool]\nsize = 4\n")
    path.chmod(0o644)
    assert load(path, environ=HOME).warnings == []


def test_a_file_that_is_gone_is_exposed_to_nobody(tmp_path):
    """Asking about permissions does not fail."""
    assert not is_exposed(tmp_path / "no.toml")


def test_a_missing_file_reads_as_none(tmp_path):
    """So do missing folders."""
    assert load(environ={"XDG_CONFIG_HOME": str(tmp_path / "a" / "b")}).file is None
    assert os.listdir(tmp_path) == []


def test_what_is_no_regular_file_is_read_too():
    """/dev/null is a file that sets nothing."""
    assert load(Path(os.devnull), environ=HOME).file == Path(os.devnull)


@given(st.text())
def test_no_text_makes_the_reader_fail(text):
    """Whatever the file says, there are settings or problems."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.toml"
        path.write_text(text, encoding="utf-8", errors="replace")
        with suppress(SettingsError):
            load(path, environ=HOME)
