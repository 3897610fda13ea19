"""What an operator can see afterwards: the event log and the metrics."""
