"""One short conversation of every client as it goes over the wire, for readers: ``samples/<client>.json``.

python -m tests.traces.samples    write them anew
"""

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

from tests.traces import corpus, talk, words
from tests.traces.clients.table import CLIENTS
from tests.traces.play import Beside, Clock, Reply, Request, Script, Timed, play
from tests.traces.wire import merged

FOLDER = Path(__file__).parent / "samples"
SHOWN = 400  # characters of a text


class _Listener:
    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def begin(self, request: Request, now: int) -> dict[str, Any]:
        entry = _shown(request, now)
        self.seen.append(entry)
        return entry

    def end(self, token: dict[str, Any], reply: Reply, now: int) -> None:
        token["answered_at"] = now
        token["answer"] = {
            "text": _cut(reply.text),
            "tool_calls": [{**call._asdict(), "arguments": _cut(call.arguments)} for call in reply.calls],
            "complete": reply.complete,
        }


def sample(name: str) -> str:
    """The file's text."""
    client, clock, listener = CLIENTS[name], Clock(corpus.BEGIN), _Listener()
    session = client.session(Random(f"sample/{name}"), clock, name, corpus.KEY)

    def script() -> Script:
        session.opener = words.task(session.rng)
        if client.title_beside:
            yield Beside(talk.title(session))
        yield from talk.turn(session, session.opener, steps=1)
        if not client.title_beside:
            yield from talk.title(session)
        yield from talk.turn(session, words.follow(session.rng), steps=0)

    play([Timed(corpus.BEGIN, script())], clock, listener)
    return json.dumps(listener.seen, indent=1, ensure_ascii=False) + "\n"


def _shown(request: Request, now: int) -> dict[str, Any]:
    body = merged(request.body, request.id_body)
    if "tools" in body:
        body["tools"] = f"{len(body['tools'])} tools"
    return {
        "at": now,
        "conversation": request.truth,
        "kind": request.kind,
        "target": f"/s/{request.id_name}{request.path}" if request.id_name else request.path,
        "fields": [f"{name}: {value}" for name, value in (*request.fields, *request.id_fields)],
        "ids": [name for name, _ in request.id_fields] + list(request.id_body) + ["path"] * bool(request.id_name),
        "body": _short(body),
    }


def _short(value: Any) -> Any:
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, dict):
        return {name: _short(inner) for name, inner in value.items()}
    return [_short(inner) for inner in value] if isinstance(value, list) else value


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    for name in CLIENTS:
        (FOLDER / f"{name}.json").write_text(sample(name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
