"""The upstream side of HTTP/1.1: heads as bytes, framing found by our own counters, bodies never parsed."""
