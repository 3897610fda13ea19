"""ocpool's CPU time over the plain aiohttp proxy's, in the same round: what is committed, and what a check makes of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

FILE = Path(__file__).with_name("ratios.json")
SLACK = 0.25

# The figures: how they are called, which measured value they compare, and over which upstream.
FIGURES: dict[str, tuple[str, str]] = {
    "CPU until the first 200": ("start_cpu_ms", "plain"),
    "CPU per request": ("cpu_us_per_request", "plain"),
    "CPU per event": ("cpu_us_per_event", "plain"),
    "CPU per request, TLS upstream": ("cpu_us_per_request", "TLS"),
    "CPU per event, TLS upstream": ("cpu_us_per_event", "TLS"),
}

Ratios = dict[str, float]


@dataclass(frozen=True)
class Finding:
    """One figure of a check. ``best`` is the lowest ratio of its rounds, None where others disturbed them all."""

    name: str
    best: float | None
    committed: float

    @property
    def limit(self) -> float:
        """What it may be: the committed ratio and a quarter."""
        return self.committed * (1 + SLACK)

    @property
    def over(self) -> bool:
        return self.best is not None and self.best > self.limit

    def line(self) -> str:
        """What is said of it."""
        if self.best is None:
            return f"{self.name}: not checked, other processes were busy in every round"
        said = f"{self.name}: {self.best:.2f} of the plain aiohttp proxy's; committed {self.committed:.2f}"
        return f"{said}, at most {self.limit:.2f}{': OVER' if self.over else ''}"


def judge(committed: Ratios, rounds: Sequence[Ratios]) -> list[Finding]:
    """Compare; a round holds the ratios that were measured undisturbed. What is not committed is not checked."""
    found = []
    for name, ratio in committed.items():
        seen = [one[name] for one in rounds if name in one]
        found.append(Finding(name, min(seen, default=None), ratio))
    return found


def settled(committed: Ratios, rounds: Sequence[Ratios]) -> bool:
    """Is every figure within its limit, so that no further round can change what is said?"""
    return all(one.best is not None and not one.over for one in judge(committed, rounds))


def read(path: Path = FILE) -> Ratios:
    """The committed ratios.

    Raises:
        ValueError: the file holds something else.
    """
    held = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(held, dict) or not held.keys() <= FIGURES.keys():
        raise ValueError(f"{path.name} must hold ratios by name; the names are: {', '.join(FIGURES)}")
    for name, ratio in held.items():
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio < 100:
            raise ValueError(f"{path.name}: {name!r} must be a ratio above 0")
    return {name: float(ratio) for name, ratio in held.items()}


def write(rounds: Sequence[Ratios], path: Path = FILE) -> Ratios:
    """Commit the medians of these rounds."""
    made = {name: round(median(seen), 3) for name in FIGURES if (seen := [one[name] for one in rounds if name in one])}
    path.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return made
