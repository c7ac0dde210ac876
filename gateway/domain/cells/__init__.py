"""Cells: several complete installations, each with its own owners."""
