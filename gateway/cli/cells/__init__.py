"""The `carteiro cells` commands: which cells there are, what balances them, where a proxy leads."""
