"""Sending one POST to a receiver: the request, the guard, the connection and what came of it."""
