"""Where a request goes: the mapping from a target on our port to the gateway's own path.

``/t/<token>`` carries the listener token, ``/s/<name>`` names the conversation, ``/-/`` is ours, ``/v1`` is short
for ``upstream.default_path``. What follows goes upstream as the same bytes, query, doubled slashes and a bare
``?`` included: nothing here decodes, resolves or normalises what it passes on.
"""

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

OPENCODE = "opencode"
OPENCODE_GO = "opencode-go"

GO_TREES = (b"/zen/go/", b"/inference/go/")

OTHER = "other"

# How a path ends says which API it speaks; the gateway serves each under several trees.
API_ENDINGS: tuple[tuple[bytes, str], ...] = (
    (b"/chat/completions", "completions"),
    (b"/responses", "responses"),
    (b"/messages", "messages"),
    (b":generatecontent", "google"),
    (b":streamgeneratecontent", "google"),
    (b"%3ageneratecontent", "google"),
    (b"%3astreamgeneratecontent", "google"),
    (b"/systemone", "systemone"),
    (b"/embeddings", "embeddings"),
)

# Remembered targets are short ones only, so that what is kept is bounded by a megabyte or two.
_REMEMBERED = 1024
_REMEMBERED_BYTES = 512


class Target(NamedTuple):
    """A request target, resolved. ``upstream`` is the origin-form target to send, query included.

    ``own``: it is ocpool's page, ``upstream`` is its path without the token. ``bad`` says why the target must be
    refused with a 400, or is None. ``named`` and ``token`` are percent-decoded: they are compared, never sent.
    """

    own: bool
    upstream: bytes
    provider: str
    api: str
    inference: bool
    named: str | None
    token: str | None
    bad: str | None = None


def resolve(target: bytes, default_path: str, base_path: str = "") -> Target:
    """Resolve a request target as it stood in the request line.

    ``default_path`` is ``upstream.default_path``; ``base_path`` is the path of ``upstream.base_url``, which is put
    in front. Never raises: a target that is not in origin form (RFC 9112, 3.2) comes back with ``bad`` set.
    """
    if len(target) <= _REMEMBERED_BYTES:
        return _remembered(target, default_path, base_path)
    return _resolve(target, default_path, base_path)


def base_path(base_url: str) -> str:
    """The path of a base URL, without a trailing slash; "" for a bare origin."""
    rest = base_url.partition("://")[2] or base_url
    slash = rest.find("/")
    if slash < 0:
        return ""
    return rest[slash:].partition("?")[0].partition("#")[0].rstrip("/")


def provider_of(path: bytes) -> str:
    """``opencode-go`` for a path under the Go trees, else ``opencode``."""
    return OPENCODE_GO if path.startswith(GO_TREES) else OPENCODE


def api_of(path: bytes) -> str:
    """Which API a path speaks, by how it ends; ``path`` has no query."""
    lower = path.lower()
    for ending, api in API_ENDINGS:
        if lower.endswith(ending):
            return api
    return OTHER


def _resolve(target: bytes, default_path: str, base: str) -> Target:
    if not target.startswith(b"/"):
        return _bad("the request target must be a path; absolute-form, authority-form and '*' are not served")
    token, rest = _prefix(target, b"/t/")
    if _is_own(rest):
        return Target(True, rest, OPENCODE, OTHER, False, None, token)
    named, rest = _prefix(rest, b"/s/")
    if named is not None and rest.startswith(b"/t/"):
        # Passing it on would hand the listener's token to the gateway.
        return _bad("/t/<token> goes before /s/<name>", named)
    mapped = _mapped(rest, default_path.encode())
    upstream = base.rstrip("/").encode() + mapped
    path = _path(mapped)
    api = api_of(path)
    provider = OPENCODE_GO if OPENCODE_GO in (provider_of(path), provider_of(upstream)) else OPENCODE
    return Target(False, upstream, provider, api, api != OTHER, named or None, token)


_remembered = lru_cache(maxsize=_REMEMBERED)(_resolve)


def _bad(why: str, named: str | None = None) -> Target:
    return Target(False, b"", OPENCODE, OTHER, False, named, None, why)


def _path(target: bytes) -> bytes:
    """The part before the query; a stray fragment, which some clients send, ends it as well."""
    return target.partition(b"?")[0].partition(b"#")[0]


def _is_own(target: bytes) -> bool:
    return target.startswith(b"/-/") or _path(target) == b"/-"


def _prefix(target: bytes, mark: bytes) -> tuple[str | None, bytes]:
    """Split ``/t/<value>/rest`` into the decoded value and ``/rest``; None when the mark is not there."""
    if not target.startswith(mark):
        return None, target
    path = _path(target)
    end = path.find(b"/", len(mark))
    if end < 0:
        end = len(path)
    rest = target[end:]
    return _decoded(target[len(mark) : end]), rest if rest.startswith(b"/") else b"/" + rest


def _decoded(value: bytes) -> str:
    # Bytes that are no UTF-8 stay apart from each other; "replace" would make one name of many.
    return unquote_to_bytes(value).decode("utf-8", "backslashreplace")


def _mapped(target: bytes, default_path: bytes) -> bytes:
    """``/v1`` and what is under it move under the default path; everything else stays where it is."""
    if target.startswith(b"/v1") and (len(target) == len(b"/v1") or target[3:4] in b"/?#"):
        return default_path.rstrip(b"/") + target[3:]
    return target
