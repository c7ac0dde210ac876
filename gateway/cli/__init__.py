"""The commands: serving, accounts and keys, the demo."""
