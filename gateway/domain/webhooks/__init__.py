"""Webhooks as their owners manage them, the feed, the samples."""
