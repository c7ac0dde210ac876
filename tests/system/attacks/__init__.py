"""Attacks on a server that runs: what each costs it, and what others feel meanwhile."""
