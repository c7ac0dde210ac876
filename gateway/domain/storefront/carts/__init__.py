"""Carts of a store's visitors and customers."""
