"""The rights of customers to their personal data."""
