"""What a store shows: its products, their categories and their reviews."""
