"""How ids are spelled: new ones, and the digests that stand for them on disk."""

import secrets
import string
import uuid
from hashlib import sha256

from pool.model import Shape

BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
DIGEST_PREFIX = "digest:"  # of a stored natural id that is a client's own value


def new_id(shape: Shape) -> str:
    """A random id of that shape; nothing in it tells when or by whom it was made."""
    if shape is Shape.SES:
        return f"ses_{secrets.token_hex(6)}{''.join(secrets.choice(BASE62) for _ in range(14))}"
    return str(uuid.uuid4())


def id_digest(routed_id: str) -> str:
    """16 hex of an id's SHA-256: enough to know a retired one again, nothing to send it by."""
    return sha256(routed_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def short(routed_id: str) -> str:
    """8 hex, as ids are shown in logs and pages."""
    return id_digest(routed_id)[:8]
