"""What the business does."""
