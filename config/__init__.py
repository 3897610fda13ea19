"""What the house may be told: every setting, its default, range and unit, and where a value came from."""
