"""Stores, their hostnames and their ways to ship."""
