"""The lock that processes share: on a sidecar beside the file, because the file itself is replaced.

It is portalocker's lock: flock(2), taken here without the package, which looks at every installed distribution when it
is imported; the package itself where there is no flock. The sidecar is never unlinked: whoever waits for the old one
would hold a lock on nothing. Kernel locks go with their process, so a killed one leaves nothing to clean up.
"""

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pool.stores.trouble import Trouble, because

if sys.platform == "win32":
    import portalocker
else:
    import fcntl

CHECK_SECONDS: Final = 0.02
TRIES: Final = 5  # when the sidecar is taken from under us
LOCKLESS: Final = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL})


@contextlib.contextmanager
def exclusive(path: Path, wait_ms: int) -> Iterator[None]:
    """Hold the lock of ``path``.

    Raises:
        Trouble: it is held by another for over ``wait_ms``, cannot be made, or the file system has no locks.
    """
    guard = path.with_name(path.name + ".guard")
    for _ in range(TRIES):
        descriptor = _acquire(guard, path, wait_ms)
        if _is_still_there(descriptor, guard):
            break
        os.close(descriptor)
    else:
        raise Trouble(f"{guard} keeps being replaced, so {path} cannot be locked")
    try:
        yield
    finally:
        os.close(descriptor)  # the lock goes with it


def _acquire(guard: Path, path: Path, wait_ms: int) -> int:
    """The sidecar, open and locked."""
    try:
        descriptor = _open_private(guard)
    except OSError as error:
        raise Trouble(f"{path} cannot be locked: {because(error)}") from None
    try:
        for _ in range(1 + int(wait_ms / 1000 / CHECK_SECONDS)):
            if _locked(descriptor):
                return descriptor
            time.sleep(CHECK_SECONDS)
        raise Trouble(f"{path} is locked by another process for over {wait_ms} ms")
    except OSError as error:
        os.close(descriptor)
        raise Trouble(f"{path} cannot be locked: {_reason(error)}") from None
    except Trouble:
        os.close(descriptor)
        raise


def _locked(descriptor: int) -> bool:
    """Take the lock, unless another has it."""
    if sys.platform == "win32":
        flags = portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING
        try:
            portalocker.lock(descriptor, flags)
        except portalocker.AlreadyLocked:
            return False
        except portalocker.LockException as error:
            raise OSError(errno.ENOLCK, str(error)) from None
    else:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _reason(error: OSError) -> str:
    return f"its file system has no locks ({because(error)})" if error.errno in LOCKLESS else because(error)


def _open_private(guard: Path) -> int:
    return os.open(guard, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o600)


def _is_still_there(descriptor: int, guard: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), guard.stat())
    except OSError:
        return False
