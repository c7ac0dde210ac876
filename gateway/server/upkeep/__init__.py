"""Periodic duties of the web side: readings, housekeeping, mail."""
