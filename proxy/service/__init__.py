"""ocpool as a service of one user: a systemd user unit or a launchd agent. For commands; the daemon needs none."""
