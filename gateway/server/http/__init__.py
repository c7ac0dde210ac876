"""Connections, requests and responses: their limits, and the frame of every request."""
