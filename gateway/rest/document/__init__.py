"""Generates and serves the OpenAPI document of the REST door."""
