"""Accounts: people, their API keys, tokens, sessions and webhooks."""
