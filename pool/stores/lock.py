"""The lock that processes share: on a sidecar beside the file, because the file itself is replaced.

The sidecar is never unlinked: whoever waits for the old one would hold a lock on nothing. Kernel locks go with
their process, so a killed one leaves nothing to clean up.
"""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pool.stores.trouble import Trouble, because

if TYPE_CHECKING:
    import portalocker
    from portalocker.exceptions import LockException

CHECK_SECONDS: Final = 0.02
TRIES: Final = 5  # when the sidecar is taken from under us
LOCKLESS: Final = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL})


@contextlib.contextmanager
def exclusive(path: Path, wait_ms: int) -> Iterator[None]:
    """Hold the lock of ``path``.

    Raises:
        Trouble: it is held by another for over ``wait_ms``, cannot be made, or the file system has no locks.
    """
    import portalocker  # noqa: PLC0415 - on the thread that needs it, beside the rest of the start

    guard = path.with_name(path.name + ".guard")
    for _ in range(TRIES):
        lock = portalocker.Lock(
            guard, mode="a", timeout=wait_ms / 1000, check_interval=CHECK_SECONDS, opener=_open_private
        )
        handle = _acquire(lock, path, wait_ms)
        if _is_still_there(handle.fileno(), guard):
            break
        lock.release()
    else:
        raise Trouble(f"{guard} keeps being replaced, so {path} cannot be locked")
    try:
        yield
    finally:
        lock.release()


def _acquire(lock: "portalocker.Lock", path: Path, wait_ms: int) -> "portalocker.types.IO":
    from portalocker.exceptions import AlreadyLocked, LockException  # noqa: PLC0415

    try:
        return lock.acquire()
    except AlreadyLocked:
        raise Trouble(f"{path} is locked by another process for over {wait_ms} ms") from None
    except LockException as error:
        raise Trouble(f"{path} cannot be locked: {_reason(error)}") from None
    except OSError as error:
        raise Trouble(f"{path} cannot be locked: {because(error)}") from None


def _reason(error: "LockException") -> str:
    cause = error.__cause__ or (error.args[0] if error.args else None)
    if isinstance(cause, OSError):
        lockless = cause.errno in LOCKLESS
        return f"its file system has no locks ({because(cause)})" if lockless else because(cause)
    return str(error)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_CLOEXEC", 0), 0o600)


def _is_still_there(descriptor: int, guard: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), guard.stat())
    except OSError:
        return False
