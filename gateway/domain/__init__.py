"""What the business does, in rooms by subject; it knows no door."""
