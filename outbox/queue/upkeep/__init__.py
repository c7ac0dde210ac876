"""Pause, remove, expire, erase and transfer what waits in the queue."""
