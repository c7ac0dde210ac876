"""The records of the product, one room per area."""
