"""One state document in memory: what it holds, read with tolerance, and changed without losing what is not ours.

Unknown keys stay, at every level; ``changed`` says whether it must be written. The verbs are in ``ledger.py``.
"""

import secrets
from typing import Any

from pool.estimator import Belief
from pool.model import Binding, ModelKey, Spare
from pool.ports import Contents, Reserved
from pool.stores.schema import (
    VERSION,
    Json,
    integer,
    read_belief,
    read_binding,
    read_reserved,
    read_spare,
    write_binding,
)


class Document:
    """A document of version 1; None makes an empty one."""

    __slots__ = ("changed", "raw")

    def __init__(self, raw: Json | None) -> None:
        self.raw: Json = {"version": VERSION, "entries": [], "bindings": {}} if raw is None else raw
        self.changed = False

    @property
    def lineage(self) -> str:
        """Changes when the document was made anew; "" until it is first written."""
        value = self.raw.get("lineage")
        return value if isinstance(value, str) else ""

    def found(self) -> None:
        """Name a document that has no lineage yet."""
        if not self.lineage:
            self.raw["lineage"] = secrets.token_hex(8)
            self.changed = True

    # -- reading ----------------------------------------------------------------------------------
    def contents(self) -> Contents:
        """Everything that could be read of it."""
        return Contents(
            version=self.raw["version"],
            lineage=self.lineage,
            free=tuple(self.free()),
            reserved=tuple(self.reserved()),
            bindings={binding.key: binding for binding in self.bindings()},
            retired=self.stamps("retired"),
            beliefs=self.beliefs(),
            probes={name: tuple(self.probes(name)) for name in self.table("probes")},
        )

    def free(self) -> list[Spare]:
        return [spare for raw in self.rows("entries") if (spare := read_spare(raw))]

    def reserved(self) -> list[Reserved]:
        return [one for raw in self.rows("reserved") if (one := read_reserved(raw))]

    def bindings(self) -> list[Binding]:
        found = (read_binding(key, raw) for key, raw in self.table("bindings").items())
        return [binding for binding in found if binding is not None]

    def lookup(self, key: str) -> Binding | None:
        return read_binding(key, self.table("bindings").get(key))

    def stamps(self, name: str) -> dict[str, int]:
        return {key: at for key, value in self.table(name).items() if (at := integer(value)) is not None}

    def probes(self, provider: str) -> list[int]:
        stamps = self.table("probes").get(provider)
        if not isinstance(stamps, list):
            return []
        return [at for value in stamps if (at := integer(value)) is not None]

    def beliefs(self) -> dict[ModelKey, Belief]:
        """What is believed of each model: ``routing``, by provider and then by model."""
        found: dict[ModelKey, Belief] = {}
        for provider, models in self.table("routing").items():
            for model, raw in models.items() if isinstance(models, dict) else ():
                belief = read_belief(raw)
                if belief is not None:
                    found[ModelKey(provider, model)] = belief
        return found

    def table(self, name: str) -> Json:
        """An object of the document; an empty one, that is not part of it, if it has none."""
        value = self.raw.get(name)
        return value if isinstance(value, dict) else {}

    def rows(self, name: str) -> list[Any]:
        value = self.raw.get(name)
        return value if isinstance(value, list) else []

    # -- changing ---------------------------------------------------------------------------------
    def assign(self, name: str, value: Any) -> None:
        """Replace one of the document's own keys; an absent one stays absent while there is nothing to say."""
        if self.raw.get(name) != value and (value or name in self.raw):
            self.raw[name] = value
            self.changed = True

    def put(self, binding: Binding) -> None:
        """Write a binding over what is there; its ids are free no more."""
        over = self.table("bindings").get(binding.key)
        written = write_binding(binding, over if isinstance(over, dict) else {})
        if written != over:
            self.assign("bindings", self.table("bindings") | {binding.key: written})
        self.remove_free({binding.routed_id, binding.standby or binding.routed_id})

    def delete(self, keys: set[str]) -> None:
        self.assign("bindings", {key: raw for key, raw in self.table("bindings").items() if key not in keys})

    def remove_free(self, ids: set[str]) -> None:
        self.assign("entries", [raw for raw in self.rows("entries") if not _has_id(raw, ids)])


def _has_id(raw: Any, ids: set[str]) -> bool:
    return isinstance(raw, dict) and isinstance(raw.get("id"), str) and raw["id"] in ids
