"""Hypothesis as this house uses it: no deadlines, because a busy machine is no counterexample."""

from hypothesis import settings

settings.register_profile("house", deadline=None)
settings.load_profile("house")
