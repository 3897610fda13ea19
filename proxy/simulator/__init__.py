"""A faithful double of the gateway, on real sockets, for demos, tests and benchmarks.

It imports nothing of the product: its facts are the gateway's own, so that a wrong belief in the product shows.
"""
