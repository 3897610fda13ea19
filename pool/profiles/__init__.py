"""What a probe is and what passes, one file a profile."""
