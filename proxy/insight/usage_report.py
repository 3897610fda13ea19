"""Counts of tokens as people and programs read them: what ``ocpool usage`` and the daemon's pages show."""

from pathlib import Path
from typing import Any

from proxy.insight import usage_file
from proxy.insight.usage_file import Key, Sums, day_of


def told(sums: Sums) -> dict[str, Any]:
    """Counts as people and programs read them: a rate or a price that nobody told is None, not 0."""
    answers = sums.turns + sums.side
    priced = answers - sums.unknown - sums.unpriced
    return {
        "turns": sums.turns,
        "side_calls": sums.side,
        "partial": sums.partial,
        "unknown": sums.unknown,
        "unpriced": sums.unpriced,
        "input": sums.input,
        "cached": sums.cached,
        "written": sums.written,
        "output": sums.output,
        "reasoning": sums.reasoning,
        "hit_rate": round(sums.cached / sums.told, 4) if sums.told else None,
        "cost_usd": round(sums.cost, 6) if priced > 0 else None,
        "saved_usd": round(sums.saved, 6) if priced > 0 else None,
        "probes": sums.probes,
        "probe_tokens": sums.probe_tokens,
        "probe_cost_usd": round(sums.probe_cost, 9) if sums.probe_cost else None,
    }


def report(path: Path, by: tuple[str, ...], since: int | None) -> dict[str, Any]:
    """The file's counts by some of day, key, provider, model, conversation, and their sum. Blocking.

    Raises:
        FileNotFoundError, sqlite3.Error: there is nothing that could be read.
    """
    first = day_of(since) if since is not None else None
    found = usage_file.read(path, by, first)
    total = Sums()
    for sums in usage_file.read(path, (), first).values():
        total.add(sums)
    names = [name for name in Key._fields if name in by]
    if "day" in names:
        found = dict(sorted(found.items()))
    rows = [dict(zip(names, key, strict=True)) | told(sums) for key, sums in found.items()]
    return {"since": first, "by": names, "rows": rows, "total": told(total)}
