"""What a finished request, or a probe, adds to the usage ledger: one tuple, put together from what was seen."""

from pool.model import ProbeResult, Stock
from proxy.answers.usage import Usage
from proxy.exchange import Exchange
from proxy.insight.usage import Ledger, Spent
from proxy.pour import Ended

_COMPLETE = Ended.COMPLETE


def note(ledger: Ledger, exchange: Exchange) -> None:
    """Note what the gateway's answer cost; where there was none, or an error in its place, nothing did.

    The model is the one that was asked for, else the public name that the gateway gives, else the answer's own word.
    """
    status, target, used = exchange.status, exchange.target, exchange.used
    if status is None or not 200 <= status < 300 or not target.inference or exchange.method != b"POST":
        return
    if used is None and exchange.refusal is not None:
        return
    model, resolved = exchange.model, exchange.resolved
    if model is None:
        model = _told(exchange)
    if resolved is not None:
        label, side = resolved.conversation.label, resolved.side
    else:
        label, side = "", False
    partial = exchange.ended is not _COMPLETE
    ledger.note(Spent(exchange.at, exchange.scope, target.provider, model, label, side, partial, used))


def _told(exchange: Exchange) -> str:
    """The model's name, where the request's body was not read for it."""
    signals, tap = exchange.signals, exchange.tap
    name = signals.zen_model if signals is not None else None
    if name is None and tap is not None:
        name = tap.model
    return name or ""


def note_probe(ledger: Ledger, stock: Stock, result: ProbeResult, at: int) -> None:
    """Note a probe that was sent at unix ms ``at``; its stock's scope says who pays, "" being the configured key.

    One without an answer counts, too: whether it was billed nobody told.
    """
    if not result.written:
        return
    written = min(result.tokens, max(0, result.completion_tokens or 0))
    usage = Usage(result.tokens - written, output=written) if result.tokens else None
    ledger.note(Spent(at, stock.scope, stock.provider, stock.model, "", False, False, usage, probe=True))
