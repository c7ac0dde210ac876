"""Builds the Grafana dashboards of this folder: `python -m dashboards.builder` writes the JSON."""
