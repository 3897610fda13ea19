"""Is there a way to the gateway at all? What stands in it is said once, as a banner, and blamed on no id."""

import socket
from typing import Final

from proxy.daemon import Daemon
from proxy.errors import (
    CaptivePortal,
    ConnectFailed,
    ConnectTimedOut,
    NameNotResolved,
    ProxyError,
    TlsFailed,
)
from proxy.exchange import Exchange
from proxy.gateway import portal
from proxy.tap import readable
from proxy.wire.connection import Connection
from proxy.wire.head import ResponseHead

PART: Final = "network"  # the banner's name in ``status``
_LOG_IN: Final = 511  # Network Authentication Required (RFC 6585, section 6)
_PAGE_MS: Final = 80.0  # how long the first bytes of a page are waited for


def suspected(daemon: Daemon, exchange: Exchange, head: ResponseHead) -> bool:
    """Is this answer to an inference request perhaps none of the gateway's, which speaks in JSON and events?"""
    if head.status != _LOG_IN and (head.status >= 400 or readable(head)):
        return False
    if not exchange.target.inference or exchange.method != b"POST":
        return False
    return portal.suspected(head.status, head.fields, daemon.upstream.origin.host_field)


async def refuse_page(daemon: Daemon, exchange: Exchange, connection: Connection, head: ResponseHead) -> None:
    """Stop a suspected answer before any byte of it is relayed.

    Raises:
        CaptivePortal: it is a web page.
    """
    body = await connection.gathered(daemon.clock.seconds(_PAGE_MS)) if head.status < 300 else b""
    if not portal.is_page(head.status, body):
        return
    host = daemon.upstream.origin.host_field
    exchange.status = None  # the gateway has said nothing
    raise CaptivePortal(
        f"A web page answered in the place of {host.decode('latin-1')} (status {head.status}): this network wants "
        "a log-in, or upstream.base_url is not the gateway. Open any page in a browser to log in, then try again."
    )


def note(daemon: Daemon, exchange: Exchange) -> None:
    """Keep the banner in step with what a finished request met. An answer of the gateway's takes it down."""
    if exchange.error is None:
        if PART in daemon.problems and exchange.status is not None:
            daemon.problem(PART, None)
        return
    text = banner(exchange.error, connected=exchange.attempts > 0)
    if text is not None:
        daemon.problems[PART] = text  # the log has it already, in the line of each such request


def banner(error: ProxyError, *, connected: bool) -> str | None:
    """What to say while requests end in this error; None where the network is not to blame.

    ``connected``: a connection had been made, and it ended by itself.
    """
    if isinstance(error, CaptivePortal | NameNotResolved | TlsFailed):
        return f"No network: {error.message}"
    if isinstance(error, ConnectFailed | ConnectTimedOut) and not connected:
        return f"No way to the gateway: {error.message}"
    return None


def local_address() -> str | None:
    """The address this machine would use towards the internet; nothing is sent to learn it."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # TEST-NET-1, RFC 5737
            return str(probe.getsockname()[0])
    except OSError:
        return None
