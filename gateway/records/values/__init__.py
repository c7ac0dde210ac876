"""Checks values and converts them to their stored and JSON forms."""
