"""What the house does: a local reverse proxy that relays requests and keeps the pool supplied."""

__version__ = "0.1.0"
