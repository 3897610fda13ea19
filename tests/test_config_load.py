"""The order of the sources, and where each value came from."""

import subprocess
import sys

import pytest
from pydantic import SecretStr

from config.keys import KEYS
from config.load import SettingsError, load
from config.settings import Settings


@pytest.fixture
def environ(tmp_path):
    """A home with a settings file."""
    folder = tmp_path / ".config" / "ocpool"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("[pool]\nsize = 4\nttl_ms = 4000\nrefill_delay_ms = 4\n")
    return {"HOME": str(tmp_path)}


def test_nothing_set_is_the_defaults(tmp_path):
    """Every key has an origin, and it is the default."""
    loaded = load(environ={"HOME": str(tmp_path)})
    assert loaded.settings == Settings()
    assert loaded.origins == dict.fromkeys(KEYS, "default")
    assert (loaded.warnings, loaded.file) == ([], None)


def test_the_command_line_beats_the_environment_beats_the_file_beats_the_default(environ, tmp_path):
    """Key by key, and origins say so."""
    environ |= {"OCPOOL_POOL__SIZE": "5", "PI_OCPOOL_TTL_MS": "5000"}
    loaded = load(None, ["pool.size=6"], environ)
    pool = loaded.settings.pool
    assert (pool.size, pool.ttl_ms, pool.refill_delay_ms, pool.probe_cooldown_ms) == (6, 5000, 4, 60_000)
    file = tmp_path / ".config" / "ocpool" / "config.toml"
    assert [loaded.origins[f"pool.{key}"] for key in ("size", "ttl_ms", "refill_delay_ms", "probe_cooldown_ms")] == [
        "command line",
        "environment PI_OCPOOL_TTL_MS",
        f"file {file}",
        "default",
    ]
    assert loaded.file == file


def test_a_named_file_takes_the_place_of_the_default_one(environ, tmp_path):
    """They are not merged."""
    other = tmp_path / "other.toml"
    other.write_text("[pool]\nttl_ms = 9\n")
    assert load(other, environ=environ).settings.pool.size == 3


def test_sources_meet_inside_a_model(environ, tmp_path):
    """Keys of one model may come from several places."""
    (tmp_path / "m.toml").write_text('[models."m"]\ntimeout_ms = 9000\nfailures = 3\n')
    loaded = load(tmp_path / "m.toml", ["models.m.failures=4"], {**environ, "OCPOOL_MODELS__m__MAX_TOKENS": "2"})
    probe, quarantine = loaded.settings.probe_for("m"), loaded.settings.quarantine_for("m")
    assert (probe.timeout_ms, probe.max_tokens, quarantine.failures) == (9000, 2, 4)


def test_a_table_takes_the_place_of_one_with_lower_rank(environ, tmp_path):
    """A token that was taken out of the variable is not let in by the file."""
    file = tmp_path / "tokens.toml"
    file.write_text('[listen.tokens]\nalice = "a"\n')
    file.chmod(0o600)
    environ |= {"OCPOOL_LISTEN__TOKENS": '{bob = "b"}'}
    assert set(load(file, environ=environ).settings.listen.tokens) == {"bob"}
    assert set(load(file, ['listen.tokens={carol = "c"}'], environ).settings.listen.tokens) == {"carol"}
    assert load(file, ["listen.tokens={}"], environ).settings.listen.tokens == {}


def test_the_clients_key_is_the_last_resort(environ, tmp_path):
    """OPENCODE_API_KEY counts where nothing of ocpool's own is said."""
    environ |= {"OPENCODE_API_KEY": " sk-general\n"}
    loaded = load(environ=environ)
    assert loaded.settings.probe.api_key == SecretStr("sk-general")
    assert loaded.origins["probe.api_key"] == "environment OPENCODE_API_KEY"
    file = tmp_path / "own.toml"
    file.write_text('[probe]\napi_key = "sk-own"\n')
    file.chmod(0o600)
    assert load(file, environ=environ).settings.probe.api_key == SecretStr("sk-own")
    assert load(environ={**environ, "OCPOOL_PROBE__API_KEY": "sk-env"}).settings.probe.api_key == SecretStr("sk-env")
    assert load(environ={**environ, "OPENCODE_API_KEY": ""}).settings.probe.api_key is None


def test_a_refusal_of_one_source_does_not_hide_another(environ, tmp_path):
    """File, environment and command line are all told."""
    file = tmp_path / "bad.toml"
    file.write_text("[pool]\nsise = 1\nttl_ms = 0\n")
    with pytest.raises(SettingsError) as error:
        load(file, ["log.lvl=x"], {**environ, "OCPOOL_SZIE": "1"})
    assert len(error.value.problems) == 4
    assert str(error.value).splitlines() == error.value.problems


def test_the_environment_of_the_process_is_the_default(monkeypatch, tmp_path):
    """As serve calls it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("OCPOOL_POOL__SIZE", "7")
    assert load().settings.pool.size == 7


def test_loading_imports_no_parser_and_no_server_that_it_does_not_need():
    """Start-up time is counted in milliseconds: no TOML parser without a file, no folders library."""
    program = (
        "import sys, config.load\n"
        "config.load.load(None, ['listen.host=127.0.0.1'], {'HOME': '/nonexistent', 'OCPOOL_ROUTING__MODE': 'off'})\n"
        "slow = {'tomllib', 'platformdirs', 'aiohttp', 'click', 'rich', 'structlog'}\n"
        "print(sorted(slow & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
