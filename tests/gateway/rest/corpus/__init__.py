"""A corpus of REST calls and their recorded responses."""
