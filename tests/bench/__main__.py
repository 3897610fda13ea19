"""The project's own figures in about a minute: direct, a plain aiohttp proxy, and ocpool, under the same load.

    make bench                    the tables; ARGS=--markdown for a document
    make bench ARGS=--check       is the CPU time per request and per event still what was committed, of aiohttp's?
    make bench ARGS=--commit      commit what it is now
    make bench ARGS=--parts       what telling conversations apart, ids, answers and bookkeeping cost, each alone

Ratios within one run are what to compare. docs/performance.md says what each figure means.
"""

import argparse
import sys

import uvloop

from tests.bench import check
from tests.bench.load import Wrong
from tests.bench.processes import on_core
from tests.bench.rounds import Patience, Results, rounds
from tests.bench.table import show

_REPEATS_S = 45.0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure ocpool beside a plain proxy.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="compare with the committed ratios; 1 when one is over")
    what.add_argument("--commit", action="store_true", help="write the ratios of now")
    what.add_argument("--parts", action="store_true", help="measure the parts of a request's way, each alone")
    parser.add_argument("--markdown", action="store_true", help="print the tables in Markdown")
    parser.add_argument("--rounds", type=int, default=3, help="of the tables (3)")
    parser.add_argument("--noisy", action="store_true", help="check or commit however busy the machine is")
    return parser.parse_args()


def _show(number: int, *, markdown: bool) -> int:
    patience = Patience(_REPEATS_S)
    results: Results = uvloop.run(rounds(number, patience))
    show(results, patience, number, markdown=markdown)
    return 0


def main() -> int:
    asked = _arguments()
    if asked.parts:
        from tests.bench import parts  # noqa: PLC0415 - loads the whole proxy, which no load generator needs

        parts.show(markdown=asked.markdown)
        return 0
    if not sys.platform.startswith("linux"):
        print("bench: not measured: it reads /proc, which only Linux has")
        return 0
    try:
        with on_core(0):
            if asked.check:
                return uvloop.run(check.check(noisy=asked.noisy))
            if asked.commit:
                return uvloop.run(check.commit(noisy=asked.noisy))
            return _show(asked.rounds, markdown=asked.markdown)
    except Wrong as exc:
        print(f"bench: {exc}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
