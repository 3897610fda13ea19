"""A certificate authority for the tests, certificates right and wrong, and the names clients asked for."""

import ssl
from dataclasses import dataclass, field
from pathlib import Path

import trustme


@dataclass
class Authority:
    """Its file is what ``upstream.ca_file`` names."""

    folder: Path
    names: list[str | None] = field(default_factory=list)  # server names asked for, in order
    ca: trustme.CA = field(default_factory=trustme.CA)

    @property
    def file(self) -> Path:
        path = self.folder / "ca.pem"
        if not path.exists():
            self.ca.cert_pem.write_to_path(str(path))
        return path

    def server(self, *names: str) -> ssl.SSLContext:
        """A server's context with a certificate for these names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.ca.issue_cert(*names or ("localhost", "127.0.0.1")).configure_cert(context)
        context.sni_callback = lambda _sock, name, _context: self.names.append(name)
        return context

    def client(self) -> ssl.SSLContext:
        """A client's context that trusts this authority alone."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.ca.configure_trust(context)
        return context
