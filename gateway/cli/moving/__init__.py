"""The command `carteiro move`."""
