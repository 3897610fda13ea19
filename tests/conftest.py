"""Hypothesis as this house uses it, and a folder for commands.

No deadlines, because a busy machine is no counterexample. `make test` plays the same examples of a test each time, so that
it says the same twice of the same tree; `make search` looks for others.
"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile("house")


@pytest.fixture
def settled_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder where commands find their settings and files, and nothing of this machine's."""
    for name in [name for name in os.environ if "OCPOOL" in name]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path
