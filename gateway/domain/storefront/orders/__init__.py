"""The orders and addresses of a customer."""
