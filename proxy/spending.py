"""What a finished request, or a probe, adds to the usage ledger: one tuple, put together from what was seen."""

from pool.model import ProbeResult, Stock
from proxy.answers.usage import Usage
from proxy.exchange import Exchange
from proxy.insight.usage import Ledger, Spent
from proxy.pour import Ended


def note(ledger: Ledger, exchange: Exchange) -> None:
    """Note what the gateway's answer cost; where there was none, or an error in its place, nothing did.

    The model is the one that was asked for, else the public name that the gateway gives, else the answer's own word.
    """
    status, tap = exchange.status, exchange.tap
    if status is None or not 200 <= status < 300 or not exchange.target.inference or exchange.method != b"POST":
        return
    used = exchange.used
    if used is None and exchange.refusal is not None:
        return
    model = exchange.model
    if model is None:
        signals = exchange.signals
        model = signals.zen_model if signals is not None else None
        if model is None and tap is not None:
            model = tap.model
    resolved = exchange.resolved
    ledger.note(
        Spent(
            exchange.at,
            exchange.scope,
            exchange.target.provider,
            model or "",
            resolved.conversation.label if resolved is not None else "",
            resolved is not None and resolved.side,
            exchange.ended is not Ended.COMPLETE,
            used,
        )
    )


def note_probe(ledger: Ledger, stock: Stock, result: ProbeResult, at: int) -> None:
    """Note a probe that was sent at unix ms ``at``; its stock's scope says who pays, "" being the configured key.

    One without an answer counts, too: whether it was billed nobody told.
    """
    if not result.written:
        return
    written = min(result.tokens, max(0, result.completion_tokens or 0))
    usage = Usage(result.tokens - written, output=written) if result.tokens else None
    ledger.note(Spent(at, stock.scope, stock.provider, stock.model, "", False, False, usage, probe=True))
