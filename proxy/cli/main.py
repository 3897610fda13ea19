"""The entry point of ``ocpool``. Answers ``--version`` itself, because that should take no longer than Python does."""

import gc
import sys
from collections.abc import Sequence

from proxy import __version__

_NEW_OBJECTS = 100_000  # between two looks for cycles; Python's own 700 makes the loading of modules 8 % longer


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        The exit code: 0 done or stopped, 1 failure or finding, 2 bad settings or usage, 3 port taken.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given in (["--version"], ["-V"]):
        print(f"ocpool {__version__}")
        return 0
    gc.set_threshold(_NEW_OBJECTS)
    from proxy.cli.commands import run

    return run(given)


if __name__ == "__main__":
    sys.exit(main())
