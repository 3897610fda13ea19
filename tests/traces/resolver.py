"""ocpool's own resolver behind the interface of a lane: the calls that the daemon makes, in its order."""

from typing import Any

from config.settings import Settings
from proxy.conversation import body, ids
from proxy.conversation.answer import Answer, ToolCall
from proxy.conversation.evidence import Evidence
from proxy.conversation.registry import Registry
from proxy.conversation.rules import NO_RULES
from proxy.conversation.scopes import scope_of
from proxy.gateway import paths
from tests.traces.play import Reply
from tests.traces.wire import Wire

SECRET = b"one installation of these traces"
DEFAULT_PATH = "/zen/go/v1"


class Ocpool:
    """One registry with its evidence, at its defaults."""

    def __init__(self) -> None:
        settings = Settings()
        self.registry = Registry(settings, SECRET, lambda _: None, Evidence(settings, SECRET))

    def begin(self, sent: Wire, now: int) -> tuple[str, str, Any]:
        target = paths.resolve(sent.target.encode(), DEFAULT_PATH)
        facts = body.read(sent.chunks, sent.size, False, self.registry.prefixes)
        scope = scope_of(None, sent.fields, SECRET)
        reading = ids.read_ids(sent.fields, target.named, facts, NO_RULES, target.upstream.decode("latin-1"))
        resolved = self.registry.resolve(reading, scope, target.provider, facts, now)
        broken = [note for note in self.registry.notes() if note.name == "evidence_failed"]
        assert not broken, broken
        return resolved.conversation.label, resolved.match, resolved

    def end(self, token: Any, reply: Reply, now: int) -> None:
        if not reply.failed:
            calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in reply.calls)
            finish = reply.finish if reply.complete else None
            self.registry.answered(token, Answer(reply.text, calls, finish, reply.complete), now)
        self.registry.done(token, now, reply.complete)
