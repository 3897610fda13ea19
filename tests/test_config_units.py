"""The types that settings are made of."""

from pathlib import Path

import pytest
from pydantic import SecretStr, TypeAdapter, ValidationError

from config.units import Count, FilePath, Secret, Switch, Text


@pytest.mark.parametrize(
    ("kind", "value"), [(Count, "3"), (Count, True), (Count, 3.0), (Switch, 1), (Switch, "true"), (Text, 3)]
)
def test_a_value_of_another_type_is_refused(kind, value):
    """Numbers, switches and text are strict."""
    with pytest.raises(ValidationError):
        TypeAdapter(kind).validate_python(value)


def test_a_tilde_in_a_path_is_the_home_folder(monkeypatch, tmp_path):
    """Paths may start with ~."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert TypeAdapter(FilePath).validate_python("~/x") == tmp_path / "x"
    assert TypeAdapter(FilePath).validate_python(Path("y")) == Path("y")


@pytest.mark.parametrize("value", ["~nobody-of-that-name/x", "a\0b", "", "a\nb"])
def test_a_path_that_cannot_be_is_refused_without_a_crash(value):
    """A home that does not exist and control characters are refusals."""
    with pytest.raises(ValidationError):
        TypeAdapter(FilePath).validate_python(value)


def test_a_secret_loses_the_newline_that_a_shell_left_and_never_shows():
    """A secret is trimmed, and neither repr nor str tells it."""
    secret = TypeAdapter(Secret).validate_python(" sk-canary\n")
    assert secret == SecretStr("sk-canary")
    assert "canary" not in f"{secret} {secret!r}"


@pytest.mark.parametrize("value", ["", " ", "a b", "a\nb", "ключ", "a\x7fb"])
def test_a_secret_that_no_header_can_carry_is_refused(value):
    """A secret is visible ASCII."""
    with pytest.raises(ValidationError):
        TypeAdapter(Secret).validate_python(value)
