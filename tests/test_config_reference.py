"""The reference that is made from the sections."""

import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import config.reference
from config.keys import KEYS, sections
from config.load import load
from config.reference import BEGIN, END, between_markers, commented_toml, main, markdown, rewritten, schema, toml
from config.settings import Settings
from config.variables import EXTENSION_KEYS

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.parametrize("key", KEYS.values(), ids=lambda key: key.name)
def test_every_key_is_described_in_one_sentence(key):
    """With a full stop at its end and none inside."""
    assert re.fullmatch(r"\S[^\n]*\.", key.description)
    assert ". " not in key.description
    assert len(key.description) <= 120


@pytest.mark.parametrize(("name", "model"), sections().items())
def test_every_section_says_what_it_is_for(name, model):
    """In its docstring, which the reference quotes."""
    assert (model.__doc__ or "").endswith("."), name


def test_the_tables_of_the_readme_are_those_of_the_sections():
    """Run `python -m config.reference --write README.md` after a change of a setting."""
    text = README.read_text(encoding="utf-8")
    assert between_markers(text) == markdown()


def test_the_tables_have_every_key_and_every_variable():
    """Each on a line of its own."""
    text = markdown()
    for key in KEYS.values():
        assert f"| `{key.field}`" in text
    for suffix in [*EXTENSION_KEYS, "DEBUG", "STATE_PATH"]:
        assert f"| `PI_OCPOOL_{suffix}` |" in text
    assert "| `port` (restart) | `8377` | 0–65535 |" in text


def test_only_what_stands_between_the_markers_is_rewritten(tmp_path):
    """Before and after stay as they are, and a second time changes nothing."""
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    assert main(["--write", str(readme)]) == 0
    text = readme.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"\n{END}\nafter\n")
    assert between_markers(text) == markdown()
    assert rewritten(text) == text


@pytest.mark.parametrize("text", ["", BEGIN, END, f"{END}{BEGIN}"])
def test_a_document_without_both_markers_is_not_rewritten(text):
    """There is no place to write to."""
    with pytest.raises(ValueError, match="has no lines"):
        rewritten(text)


def test_the_tables_can_be_printed(capsys):
    """And nonsense is a usage error."""
    assert main([]) == 0
    assert capsys.readouterr().out == markdown() + "\n"
    assert main(["--rite"]) == 2


def test_the_module_is_a_command(monkeypatch):
    """As the maintainers call it; its exit code is that of main."""
    monkeypatch.setattr("sys.argv", ["reference", "--rite"])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(config.reference.__file__, run_name="__main__")


def test_the_commented_file_sets_nothing_and_has_every_key(tmp_path):
    """Read as it is, it is the defaults; with the comments taken off, still."""
    text = commented_toml()
    assert set(tomllib.loads(text)) == set(sections())
    path = tmp_path / "config.toml"
    path.write_text(text)
    assert load(path, environ={"HOME": "/nonexistent"}).settings == Settings()
    example = text.partition("# [models.")[2]
    everything = [re.sub(r"^# (\w+ = )", r"\1", line) for line in text.removesuffix(example).splitlines()]
    path.write_text("\n".join(line for line in everything if not line.endswith(' = ""')))
    assert load(path, environ={"HOME": "/nonexistent"}).settings == Settings()
    assert example.startswith('"kimi-k3"]\n# max_upstream_ms = ')
    assert {f"{key.section}.{key.field}" for key in KEYS.values() if f"# {key.field} = " in text} == set(KEYS)


def test_the_schema_says_what_the_sections_say():
    """Ranges, defaults, descriptions; secrets are write-only, nothing unknown is allowed."""
    text = json.dumps(schema())
    made = json.loads(text)
    pool = made["$defs"]["PoolSection"]["properties"]["size"]
    assert (pool["minimum"], pool["maximum"], pool["default"]) == (1, 16, 3)
    assert pool["description"] == KEYS["pool.size"].description
    assert made["$defs"]["PoolSection"]["additionalProperties"] is False
    assert made["additionalProperties"] is False
    assert "class" in made["$defs"]["RuleSection"]["required"]
    assert '"writeOnly": true' in text
    assert made["properties"]["models"]["additionalProperties"]["$ref"].endswith("ModelSection")


@pytest.mark.parametrize("value", [1, True, 'a"b\\c\n', ["a", 1], {"a b": {"c": [True]}}, [], {}, "ü"])
def test_values_are_spelled_as_toml(value):
    """What is written can be read."""
    assert tomllib.loads(f"x = {toml(value)}") == {"x": value}
