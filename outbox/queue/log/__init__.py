"""What people and metrics read of the queue."""
