"""Manages webhooks, reads the events feed, and makes event samples."""
