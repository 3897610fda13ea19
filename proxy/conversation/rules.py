"""The user's own rules about ids (``conversation.rules``), which outrank all others.

A rule about a header takes its value as an id of the rule's class; about a path or a User-Agent, it puts whatever
id such a request has into its class. ``ignore`` makes it no id at all. The first rule that applies decides.
"""

from collections.abc import Sequence
from typing import NamedTuple

from config.sections.conversation import RuleSection
from proxy.conversation.precedence import Kind, accept_field, canonical

_CLASSES = {"owner": Kind.OWNER, "cohort": Kind.COHORT, "ignore": Kind.NONE}


class Ruled(NamedTuple):
    """What the rules made of a request.

    ``fields`` are the ones that may still name a conversation, ``chosen`` is a header's (class, name, value),
    ``about`` the class of whatever id the request has, None when no rule speaks of it.
    """

    fields: list[tuple[bytes, bytes]]
    chosen: tuple[Kind, str, str] | None = None
    about: Kind | None = None


class Rules:
    """``conversation.rules``, ready to be applied; false when there are none."""

    __slots__ = ("_agents", "_headers", "_paths")

    def __init__(self, rules: Sequence[RuleSection] = ()) -> None:
        self._headers: dict[str, Kind] = {}
        self._paths: list[tuple[str, Kind]] = []
        self._agents: list[tuple[str, Kind]] = []
        for rule in rules:
            kind = _CLASSES[rule.class_]
            if rule.header is not None:
                self._headers.setdefault(canonical(rule.header.encode("latin-1")), kind)
            elif rule.path is not None:
                self._paths.append((rule.path, kind))
            elif rule.user_agent is not None:
                self._agents.append((rule.user_agent.lower(), kind))

    def __bool__(self) -> bool:
        return bool(self._headers or self._paths or self._agents)

    @classmethod
    def compile(cls, rules: Sequence[RuleSection]) -> "Rules":
        """The rules of the settings."""
        return cls(rules)

    def apply(self, fields: list[tuple[bytes, bytes]], path: str) -> Ruled:
        """What the rules say of a request with these fields, sent to this path."""
        kept: list[tuple[bytes, bytes]] = []
        chosen: dict[str, str] = {}
        agent = ""
        for field in fields:
            name = canonical(field[0])
            if name == "user-agent":
                agent = field[1].decode("latin-1").lower()
            kind = self._headers.get(name)
            if kind is Kind.NONE:
                continue
            kept.append(field)
            if kind is not None and (value := accept_field(field[1])) is not None:
                chosen.setdefault(name, value)
        about = next((kind for start, kind in self._paths if path.startswith(start)), None)
        if about is None:
            about = next((kind for part, kind in self._agents if part in agent), None)
        for name, kind in self._headers.items():  # in the order of the rules
            if name in chosen:
                return Ruled(kept, (kind, name, chosen[name]), about)
        return Ruled(kept, None, about)


NO_RULES = Rules()
