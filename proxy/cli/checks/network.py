"""The way to the gateway: name, connection, certificate, and whether it is the gateway that answers.

One GET of the list of models, which costs nothing. Nothing is retried and no redirect is followed.
"""

import http.client
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from config.settings import Settings
from proxy import __version__
from proxy.cli.checks.finding import Finding

SKEW_MS: Final = 60_000
EARLIEST_MS: Final = 1_790_000_000_000  # September 2026: this code is younger
_LONGEST = 4_194_304
_CONTACT = "Check the network, upstream.base_url and upstream.proxy."


@dataclass(frozen=True, slots=True)
class Reached:
    """What answered: its status, Content-Type and Date."""

    status: int
    content_type: str
    date: str | None


def reach(settings: Settings, proxy: str | None, credential: Iterable[tuple[bytes, bytes]] = ()) -> Reached | Finding:
    """Ask the gateway for its models; ``proxy`` is the HTTP proxy to go through, if any."""
    base = urlsplit(settings.upstream.base_url)
    host, secure = base.hostname or "", base.scheme == "https"
    number = base.port or (443 if secure else 80)
    fields = {"User-Agent": f"ocpool/{__version__}", "Accept": "application/json", "Connection": "close"}
    fields |= {name.decode("latin-1"): value.decode("latin-1") for name, value in credential}
    path = base.path.rstrip("/") + settings.upstream.default_path.rstrip("/") + "/models"
    try:
        connection = _connection(settings, host, number, proxy, secure=secure)
    except (OSError, ValueError) as error:
        return Finding(f"The way to {host} cannot be set up: {error}.", "Check upstream.ca_file and upstream.proxy.")
    try:
        connection.request("GET", path, headers=fields)
        answer = connection.getresponse()
        answer.read(_LONGEST)
        return Reached(answer.status, answer.getheader("Content-Type", ""), answer.getheader("Date"))
    except ssl.SSLCertVerificationError as error:
        return Finding(
            f"The certificate of {host} is not to be trusted: {error.verify_message}.",
            "If your network inspects TLS, name its certificate in upstream.ca_file; if it wants a log-in, log in.",
        )
    except socket.gaierror as error:
        return Finding(f"The name {host} is not found ({error.strerror}): there is no network, or no DNS.", _CONTACT)
    except (OSError, http.client.HTTPException) as error:
        return Finding(f"{host} port {number} cannot be reached: {str(error) or type(error).__name__}.", _CONTACT)
    finally:
        connection.close()


def answered(reached: Reached) -> list[Finding]:
    """Is it the gateway that answered, and with what?"""
    if 300 <= reached.status < 400 or "html" in reached.content_type.lower():
        return [
            Finding(
                f"A page answers in place of the gateway ({reached.status}): a captive portal or a wrong address.",
                "Log in to the network with a browser; check upstream.base_url.",
            )
        ]
    if reached.status >= 500:
        return [Finding(f"The gateway answers with {reached.status}.", "Wait; see the operator's status page.")]
    if reached.status not in {200, 401, 403}:
        return [
            Finding(
                f"The gateway has no list of models here (status {reached.status}).", "Check upstream.default_path."
            )
        ]
    return []


def clock(reached: Reached | None, now: int) -> list[Finding]:
    """Is this machine's clock right? Compared with the answer's ``Date``, to its second (RFC 9110, section 6.6.1)."""
    remedy = "Set the clock, or turn on time synchronisation: ages and Retry-After are reckoned by it."
    if now < EARLIEST_MS:
        return [Finding("The clock of this machine is years behind.", remedy)]
    if reached is None or reached.date is None:
        return []
    try:
        theirs = parsedate_to_datetime(reached.date).timestamp() * 1000
    except ValueError:
        return []
    off = now - theirs
    if abs(off) <= SKEW_MS:
        return []
    direction = "ahead of" if off > 0 else "behind"
    return [Finding(f"The clock of this machine is {abs(off) / 1000:.0f} s {direction} the gateway's.", remedy)]


def _connection(
    settings: Settings, host: str, number: int, proxy: str | None, *, secure: bool
) -> http.client.HTTPConnection:
    seconds = settings.upstream.connect_timeout_ms / 1000
    context = None
    if secure:
        context = ssl.create_default_context()
        if settings.upstream.ca_file is not None:
            context.load_verify_locations(settings.upstream.ca_file)
    at, port, via = host, number, None
    if proxy is not None:
        via = urlsplit(proxy)
        at, port = via.hostname or "", via.port or 8080
    made = (
        http.client.HTTPConnection(at, port, timeout=seconds)
        if context is None
        else http.client.HTTPSConnection(at, port, timeout=seconds, context=context)
    )
    if via is not None:
        made.set_tunnel(host, number)
    return made
