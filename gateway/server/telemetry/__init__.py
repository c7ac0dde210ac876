"""Telemetry: logs, metrics, probes."""
