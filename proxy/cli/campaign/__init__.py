"""Whether routing helps: every scenario played in virtual time, with ocpool's own policy and with others.

The pool, its verdicts, its refill and its probing are the real ones; the world, the clients and the other policies are
the simulator's. ``python -m proxy.cli.campaign`` (``make scenarios``) plays all of it and writes ``docs/scenarios.md``.
"""
