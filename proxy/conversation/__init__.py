"""Which conversation a request belongs to, read from what the client sent."""
