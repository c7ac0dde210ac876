"""The pages of a visitor's own account."""
