"""Accounts: passwords, keys, tokens, sessions, and who is recognised by them."""
