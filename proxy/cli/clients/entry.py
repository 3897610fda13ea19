"""What is known of a client: its configuration, with marks where the daemon's address goes, and what it sends."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

READ_ON: Final = "2026-11-30"  # when what was not run was read in the clients' documentation
DEFAULT_ADDRESS: Final = "http://127.0.0.1:8377"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a daemon is reached: its address without a path, and the token it wants, if any."""

    address: str = DEFAULT_ADDRESS
    token: str | None = None

    @property
    def root(self) -> str:
        """The address with the token in its path (RFC 3986 escapes), where every path of the gateway may follow."""
        address = self.address.rstrip("/")
        return address if self.token is None else f"{address}/t/{quote(self.token, safe='')}"

    def fill(self, text: str) -> str:
        """Put the addresses in the place of the marks %GO%, %ZEN%, %NAMED% and %ROOT%."""
        marks = {
            "%GO%": f"{self.root}/zen/go/v1",
            "%ZEN%": f"{self.root}/zen/v1",
            "%NAMED%": f"{self.root}/s/my-task/v1",
            "%ROOT%": self.root,
        }
        for mark, value in marks.items():
            text = text.replace(mark, value)
        return text


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of configuration. ``file``: where it goes, in words; ``form``: the name of its syntax."""

    file: str
    form: str
    text: str


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    ``sends`` is what it names a conversation by; ``limits`` what does not work or must be known; ``ran`` the versions
    that were run from the snippet by ``scripts/check-clients``, empty where it is from documentation.
    """

    name: str
    title: str
    snippets: tuple[Snippet, ...]
    sends: str
    limits: str
    ran: str = ""

    @property
    def evidence(self) -> str:
        """How it is known that the snippet works."""
        return f"run: {self.ran}" if self.ran else f"from documentation, {READ_ON}"
