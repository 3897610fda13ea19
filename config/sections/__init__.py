"""The sections of the settings, one file each."""
