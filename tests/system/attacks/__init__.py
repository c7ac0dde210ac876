"""Attacks on a running server: the cost of each, and its effect on others."""
