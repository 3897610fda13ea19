"""The daemon's own addresses under /-/: health, status, metrics and the few things one may ask it to do."""
