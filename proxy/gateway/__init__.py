"""All that is known about the upstream's contract: paths, fields, signals and refusals, one table each."""
