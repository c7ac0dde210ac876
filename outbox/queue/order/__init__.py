"""Turn the order of a webhook on and off, and find the records that are stuck."""
