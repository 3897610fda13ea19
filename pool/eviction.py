"""How much is forgotten at once of a table that is over its bound."""


def batch(bound: int) -> int:
    """So many more than have to be: what is done in a row costs half. Never more than one in 32 of all."""
    return min(16, bound // 32)
