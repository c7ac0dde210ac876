"""Manages accounts, and authenticates callers by password, key, token or session."""
