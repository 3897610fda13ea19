"""Conversations with a registry: requests as a client would send them, answers as they would pass."""

import json

from config.settings import Settings
from proxy.conversation import body
from proxy.conversation.answer import Answer, ToolCall
from proxy.conversation.evidence import Evidence
from proxy.conversation.ids import read_ids
from proxy.conversation.registry import Registry

SECRET = bytes(32)
GO = "opencode-go"


def user(text, **more):
    return {"role": "user", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def assistant(text, *calls):
    """An answer; calls are (id, name, arguments)."""
    message = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": call, "type": "function", "function": {"name": name, "arguments": arguments}}
            for call, name, arguments in calls
        ]
    return message


def result(call, text="done"):
    return {"role": "tool", "tool_call_id": call, "content": text}


def limits(**conversation):
    return Settings.model_validate({"conversation": conversation})


class Talk:
    """One daemon's registry and a clock that moves a little with everything."""

    def __init__(self, evidence=None, now=1_000_000, held=None, **conversation):
        settings = limits(**conversation)
        self.evidence = evidence if evidence is not None else Evidence(settings, SECRET)
        self.registry = Registry(settings, SECRET, (held or {}).get, self.evidence)
        self.now = now

    def ask(self, messages, *, scope="alice", tools=True, model="kimi-k3", headers=(), stream=True, after=1000, **more):
        """A request arrives. Returns where it belongs; it is under way until ``answer`` or ``fail``."""
        self.now += after
        document = {"model": model, "messages": messages, "stream": stream, **more}
        if tools:
            document["tools"] = [{"type": "function", "function": {"name": "read"}}]
        return self.raw(json.dumps(document).encode(), scope, headers)

    def raw(self, data, scope="alice", headers=()):
        facts = body.read([data], len(data), False, self.registry.prefixes)
        fields = [(name.encode(), value.encode()) for name, value in dict(headers).items()]
        return self.registry.resolve(read_ids(fields, None, facts), scope, GO, facts, self.now)

    def answer(self, resolved, text="", *calls, finish=None, complete=True):
        """Its answer passes, whole or up to where the client left."""
        self.now += 500
        said = Answer(
            text, tuple(ToolCall(*call) for call in calls), finish or ("tool_calls" if calls else "stop"), complete
        )
        self.registry.answered(resolved, said, self.now)
        self.registry.done(resolved, self.now, complete)

    def fail(self, resolved):
        """It ends without an answer."""
        self.now += 500
        self.registry.answered(resolved, None, self.now)
        self.registry.done(resolved, self.now, False)

    def turn(self, messages, text="", *calls, finish=None, **how):
        """A request and its answer. Returns where it belonged."""
        resolved = self.ask(messages, **how)
        self.answer(resolved, text, *calls, finish=finish)
        return resolved


def label(resolved):
    return resolved.conversation.label
