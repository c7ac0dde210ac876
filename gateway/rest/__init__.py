"""Serves the REST API: its routes and handlers, most of them generic over resources."""
