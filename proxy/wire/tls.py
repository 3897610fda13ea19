"""TLS towards the upstream: the system's trust store, and a CA file beside it. It cannot be switched off."""

import ssl
from pathlib import Path


def client_context(ca_file: Path | None) -> ssl.SSLContext:
    """A verifying context. OpenSSL obeys ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``; ``ca_file`` adds to them.

    Raises:
        OSError: ``ca_file`` cannot be read or holds no certificate.
    """
    context = ssl.create_default_context()
    if ca_file is not None:
        context.load_verify_locations(cafile=str(ca_file))
    context.set_alpn_protocols(["http/1.1"])
    return context
