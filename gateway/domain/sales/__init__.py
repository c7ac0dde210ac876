"""Deals, products, quotes and invoices."""
