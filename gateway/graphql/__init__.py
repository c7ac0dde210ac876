"""Serves the storefront GraphQL API: from HTTP to the domain and back."""
