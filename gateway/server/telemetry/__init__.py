"""What operations see: logs, metrics, probes."""
