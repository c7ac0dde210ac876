"""Declares, checks, reads and writes records, for every door."""
