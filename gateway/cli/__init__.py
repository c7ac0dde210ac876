"""The commands: the server, accounts and keys, the demo."""
