"""Declares deals, products, quotes and invoices, and implements their rules."""
