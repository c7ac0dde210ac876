"""Orders the carts of a store."""
