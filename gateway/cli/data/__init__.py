"""Backup, restore and copy of all data."""
