"""The first page, and its comparison of two periods."""
