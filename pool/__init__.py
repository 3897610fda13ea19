"""What the house knows: ids, who owns them, and when one is taken, refilled or retired. No HTTP, no terminal."""
