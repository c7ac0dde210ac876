"""Receives, stores, serves and removes the images of products."""
