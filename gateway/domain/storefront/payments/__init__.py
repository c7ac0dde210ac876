"""Payments by a provider: the store's secret, the page for a card, and the calls that report it."""
