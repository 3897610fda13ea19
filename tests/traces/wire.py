"""A request as it leaves the client: its target, its fields and its body, with ids or without."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.traces.play import Request

_CONTENT = ("messages", "system", "instructions", "input")


class Wire(NamedTuple):
    """What is sent; fields as bytes, the body in pieces as a socket would bring it."""

    target: str
    fields: list[tuple[bytes, bytes]]
    chunks: list[bytes]
    size: int


def wire(request: Request, with_ids: bool, piece: int = 65_536) -> Wire:
    """Write a request down. Without ids, every field, key and name that speaks of the session is missing."""
    target, body = request.path, request.body
    fields = [("Host", "127.0.0.1:8377"), ("Authorization", f"Bearer {request.key}"), *request.fields]
    if with_ids:
        fields += request.id_fields
        body = merged(body, request.id_body)
        if request.id_name is not None:
            target = f"/s/{request.id_name}{target}"
    data = json.dumps(body, ensure_ascii=False).encode()
    chunks = [data[start : start + piece] for start in range(0, len(data), piece)]
    raw = [(name.encode(), value.encode()) for name, value in fields]
    return Wire(target, [*raw, (b"Content-Length", b"%d" % len(data))], chunks, len(data))


def merged(body: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The body with the ids in it; an object takes the ids beside what it has."""
    made = dict(body)
    for name, value in more.items():
        inside = made.get(name)
        made[name] = {**inside, **value} if isinstance(inside, dict) and isinstance(value, dict) else value
    return made


def content_of(request: Request) -> bytes:
    """The same for two requests that nothing tells apart: credential and conversation text."""
    said = json.dumps([request.key, *(request.body.get(name) for name in _CONTENT)])
    return hashlib.blake2b(said.encode(), digest_size=16).digest()


def names_session(request: Request) -> set[str]:
    """Every value that speaks of the session."""
    found = {value for _, value in request.id_fields}
    found |= {request.id_name} if request.id_name else set()
    found |= {value for value in request.id_body.values() if isinstance(value, str)}
    return {value for value in found if len(value) >= 6}
