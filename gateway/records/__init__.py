"""What a record is, and the one way to it for every door."""
