"""``ocpool diagnose``: is routing sticky, and does the configured classifier reject answers that were fast?"""

from collections.abc import Sequence
from pathlib import Path

import click

from config.settings import Settings
from pool.ids import new_id
from pool.model import ModelKey, ProbeKind, ProbeResult, Shape
from proxy.cli import probing
from proxy.cli.instants import duration
from proxy.cli.options import json_option, load_settings, print_json, settings_options
from proxy.cli.probing import Bench, probing_options
from proxy.cli.stickiness import Finding, judge, latency_ms
from proxy.insight.redact import digest

# Few: eight one-token requests are enough to see a bimodal route, and no more than a curious user sends by hand.
_SAME = 4
_FRESH = 4


@click.command()
@probing_options
@settings_options
@json_option
def diagnose(
    *,
    model: str,
    provider: str,
    upstream: str | None,
    api_key_env: str | None,
    config_file: Path | None,
    overrides: Sequence[str],
    as_json: bool,
) -> int:
    """Probe one id four times and four fresh ids once, eight small requests at most.

    Exit code 1 when an answer that was fast is rejected by the configured classifier (`--set
    probe.require_gateway_id=true` shows the false rejections of the old one), or when nothing was answered.
    """
    loaded = load_settings(config_file, probing.chosen(overrides, upstream))
    settings = loaded.settings
    place = probing.bench(loaded, model, provider, api_key_env)
    one = new_id(Shape.UUID)
    # Alternating, so that a change at the gateway meanwhile hits both alike.
    ids = [one if number % 2 == 0 else new_id(Shape.UUID) for number in range(_SAME + _FRESH)]
    with probing.counted(place, wanted=upstream is None) as store:
        results, stopped = probing.run(place, ids, store=store, quiet=as_json)
    same = [result for result in results if result.id == one]
    finding = judge(same, [result for result in results if result.id != one])
    learned = known(place, wanted=upstream is None)
    rejected = false_rejections(results, settings, model)
    answered = any(result.status == 200 for result in results)
    if as_json:
        print_json(
            {
                "provider": provider,
                "model": model,
                "upstream": settings.upstream.base_url,
                "key": place.key.origin,
                "routing": finding.routing,
                "because": finding.because,
                "repeated": digest(one),
                "learned": learned,
                "results": [probing.as_facts(result) for result in results],
                "stopped": stopped,
                "falseRejections": len(rejected),
            }
        )
    else:
        probing.show(
            f"{provider} {model} at {settings.upstream.base_url}, key from {place.key.origin}",
            probing.table(results),
        )
        _conclude(digest(one), finding, rejected, stopped, answered=answered)
        if learned is not None:
            probing.show(_said(learned))
    return 0 if answered and not rejected else 1


def known(place: Bench, *, wanted: bool) -> dict[str, object] | None:
    """What running daemons have learned from their traffic about this model, out of the state file; None: nothing.

    ``wanted`` is False for another upstream than the configured one: what is known is not about that.
    """
    from config.paths import state_path
    from pool.stores.file import read
    from pool.stores.trouble import Trouble

    try:
        beliefs = read(state_path(place.settings)).beliefs if wanted else {}
    except Trouble:
        return None
    belief = beliefs.get(ModelKey(place.target.provider, place.target.model))
    now = place.clock.wall_ms()
    if belief is None or not belief.holds(now):
        return None
    return {"routing": belief.regime.value, "compared": belief.compared, "age_ms": now - belief.at}


def _said(learned: dict[str, object]) -> str:
    age_ms = learned["age_ms"]
    ago = duration(age_ms) if isinstance(age_ms, int) else "?"
    return f"The daemon's own traffic says {learned['routing']}: {learned['compared']} comparisons, the last {ago} ago."


def false_rejections(results: Sequence[ProbeResult], settings: Settings, model: str) -> list[ProbeResult]:
    """Answers within ``probe.max_upstream_ms`` that the classifier did not call fast."""
    ceiling = settings.probe_for(model).max_upstream_ms
    return [
        result
        for result in results
        if result.kind is ProbeKind.MISMATCH
        or (result.kind is ProbeKind.SLOW and result.reason is None and latency_ms(result) <= ceiling)
    ]


def _conclude(
    one: str, finding: Finding, rejected: Sequence[ProbeResult], stopped: str | None, *, answered: bool
) -> None:
    if stopped is not None:
        probing.show(f"Stopped early: {stopped}.")
    words = {"sticky": "looks sticky", "balanced": "looks balanced, request by request", "unknown": "cannot be told"}
    probing.show(f"Routing {words[finding.routing]}: {finding.because} (the repeated id is {one}).")
    if not answered:
        probing.show("Nothing was answered, so the classifier was not tested.")
    elif rejected:
        answers = "answer was" if len(rejected) == 1 else "answers were"
        probing.show(
            f"The classifier is wrong: {len(rejected)} fast {answers} rejected. "
            "Leave probe.require_gateway_id false: ids of answers say nothing about the route."
        )
    else:
        probing.show("The classifier rejected no fast answer.")
