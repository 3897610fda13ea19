"""What can be wrong with the state on disk, as one clear sentence."""

import os


class Trouble(Exception):
    """The store cannot be read or written; ``str()`` says what and why, in words for the user."""


def because(error: OSError) -> str:
    """What the system says, without the path that the sentence has already."""
    return os.strerror(error.errno) if error.errno else str(error)
