"""Who is asking. Conversations of two scopes never meet, whatever ids they send.

A scope is an HMAC, so that it may be written down; the secret behind it is one per installation.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import time
from functools import lru_cache
from pathlib import Path
from typing import Final

SECRET_BYTES: Final = 32

# The first that is there is the caller: an SDK that sends a key in two of them sends the same key.
_CREDENTIALS = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")
_RANK = {name: rank for rank, name in enumerate(_CREDENTIALS)}
_PATIENCE = 40  # looks at a file that another process has created and not yet filled
_PAUSE_SECONDS = 0.025


def scope_of(token: str | None, fields: list[tuple[bytes, bytes]], secret: bytes) -> str:
    """16 hex: of the listener token, if one is required, else of the caller's credential, or of having none.

    The same key is the same caller in whatever field it stands. Never empty.
    """
    if token is not None:
        return _hmac(secret, b"token", token.encode("utf-8", "surrogateescape"))
    sent = [(lower, value) for name, value in fields if (lower := name.lower()) in _RANK]
    if len(sent) > 1:
        sent.sort(key=lambda field: _RANK[field[0]])
    for _, value in sent:
        credential = value.strip()
        scheme, _, key = credential.partition(b" ")
        if scheme.lower() == b"bearer":
            credential = key.strip()
        if credential:
            return _hmac(secret, b"credential", credential)
    return _hmac(secret, b"nobody", b"")


def load_secret(path: Path | None, configured: str | None) -> tuple[bytes, str | None]:
    """The installation's secret, and a warning when it could not be read or kept. Blocking; for the start.

    ``configured`` is ``state.secret``. Else the file at ``path`` is read, or created, with 32 random bytes that only
    its owner may read; of two processes that create it at once, both get what is in the file. Without a usable file
    the secret lasts as long as the process.
    """
    if configured is not None:
        return hashlib.sha256(configured.encode("utf-8", "surrogateescape")).digest(), None
    if path is None:
        return secrets.token_bytes(SECRET_BYTES), None
    try:
        if not path.exists():
            _create(path, secrets.token_bytes(SECRET_BYTES))
        return _read(path), _tighten(path)
    except (OSError, ValueError) as error:
        return secrets.token_bytes(SECRET_BYTES), (
            f"The secret file {path} cannot be used ({error}): conversations get other labels after a restart."
        )


@lru_cache(maxsize=256)
def _hmac(secret: bytes, kind: bytes, what: bytes) -> str:
    return hmac.digest(secret, b"scope\0%b\0%b" % (kind, what), "sha256").hex()[:16]


def _create(path: Path, secret: bytes) -> None:
    """Put the secret there, whole, unless another process was first."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    _write(draft, secret)
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    except OSError:  # a file system without links: readers wait until it is whole
        with contextlib.suppress(FileExistsError):
            _write(path, secret)
    finally:
        draft.unlink(missing_ok=True)


def _write(path: Path, secret: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise


def _read(path: Path) -> bytes:
    for _ in range(_PATIENCE):
        secret = path.read_bytes()
        if len(secret) >= SECRET_BYTES:
            return secret[:SECRET_BYTES]
        time.sleep(_PAUSE_SECONDS)
    raise ValueError(f"it has fewer than {SECRET_BYTES} bytes; remove it to have a new one")


def _tighten(path: Path) -> str | None:
    if os.name != "posix" or not path.stat().st_mode & 0o077:
        return None
    path.chmod(0o600)
    return f"The secret file {path} was open to others; now only its owner may read it."
