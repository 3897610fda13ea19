"""How well conversations are recognised, row by row, on the traces.

    make traces
    python -m tests.traces [--seed N] [--misses] [ROW ...]

Leaves with 1 when a row or a mean is under its bar.
"""

import argparse
import sys

from tests.traces import bars
from tests.traces.report import ROWS, TOGETHER, Line, line, played, told, total
from tests.traces.resolver import Ocpool

HEAD = (
    f"{'':42}{'conver-':>8}{'':>9}{'ids removed':>20}{'ids present':>20}\n{'row':42}{'sations':>8}{'requests':>9}"
    + (f"{'precision':>11}{'recall':>9}" * 2)
)


def table(title: str, lines: list[Line]) -> str:
    """Clients or cases, with their means and their worst rows."""
    made = [title, HEAD]
    for one in lines:
        removed, present = one.removed, one.present
        figures = (removed.precision, removed.recall, present.precision, present.recall)
        made.append(f"{one.name:42}{removed.conversations:>8}{removed.requests:>9}{_figures(figures)}")
    removed, present = total(lines), total(lines, "present")
    made.append(
        f"{'mean of rows':59}{_figures((removed.precision, removed.recall, present.precision, present.recall))}"
    )
    for what, sums in (("ids removed", removed), ("ids present", present)):
        made.append(
            f"worst row, {what}: precision {sums.worst_precision[0]:.4f} ({sums.worst_precision[1]}), "
            f"recall {sums.worst_recall[0]:.4f} ({sums.worst_recall[1]})"
        )
    return "\n".join(made)


def _figures(figures: tuple[float, ...]) -> str:
    return "".join(f"{figure:>{11 if number % 2 == 0 else 9}.4f}" for number, figure in enumerate(figures))


def main() -> int:
    parser = argparse.ArgumentParser(description="Replay the traces and report precision and recall.")
    parser.add_argument("rows", nargs="*", help="rows to play; all of them by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--misses", action="store_true", help="show where pairs were missed or wrong")
    asked = parser.parse_args()
    lines = []
    for name in asked.rows or (*ROWS, TOGETHER):
        removed, present = played(name, Ocpool, asked.seed)
        lines.append(line(name, removed, present))
        if asked.misses:
            shown = told(f"{name}, no ids", removed, False) + told(f"{name}, ids", present, True)
            print("".join(f"{one}\n" for one in shown), end="")
    for title, part in (
        ("Clients", [one for one in lines if one.client]),
        ("Cases", [one for one in lines if one.case]),
        ("Together", [one for one in lines if not one.client and not one.case]),
    ):
        if part:
            print(table(title, part), end="\n\n")
    wrong = bars.under(lines)
    print("\n".join(wrong) if wrong else "Every row and mean is over its bar.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
