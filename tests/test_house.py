"""Rules of the house that no linter knows."""

import re
import subprocess
import tomllib
from importlib.metadata import distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("config", "pool", "proxy")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def tracked() -> list[Path]:
    """Every file of the repository, as git knows it; of an unpacked archive, every text file."""
    found = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode == 0 and found.stdout:
        return [ROOT / name for name in found.stdout.splitlines() if (ROOT / name).is_file()]
    return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts]


def test_no_source_file_is_over_300_lines():
    assert not [path for path in SOURCES if len(path.read_text().splitlines()) > 300]


def test_every_source_file_says_what_it_is_for():
    assert not [path for path in SOURCES if not path.read_text().startswith('"""')]


def test_the_three_package_names_are_ours_alone():
    owners = {
        (name, distribution.metadata["Name"])
        for distribution in distributions()
        for file in distribution.files or ()
        if (name := str(file).split("/", 1)[0]) in PACKAGES
    }
    assert {owner for _, owner in owners} <= {"ocpool"}


def test_every_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[<>=;\[ ]", line, maxsplit=1)[0].lower().replace("_", "-") for line in wanted}
    pins = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, equals, version = line.partition("==")
        assert equals, line
        assert re.fullmatch(r"[0-9][0-9A-Za-z.+!-]*", version), line
        pins[name.lower().replace("_", "-")] = version
    assert names <= pins.keys()


def test_the_version_is_said_once_and_the_same():
    import proxy

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == proxy.__version__


def test_nothing_speaks_of_how_it_was_made():
    words = re.compile(
        r"/work/(main|shared|\.library)|/tmp/w/|\bseed [ABC]\b|pypi\.org|pythonhosted|registry\.npmjs", re.IGNORECASE
    )
    mine = Path(__file__).resolve()
    told = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in tracked()
        if path.resolve() != mine and path.suffix not in {".png", ".svg"}
        if (found := words.search(path.read_text(errors="replace")))
    ]
    assert not told
