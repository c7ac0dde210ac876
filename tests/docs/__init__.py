"""The docs do what they say: blocks run, outputs agree, quoted messages exist."""
