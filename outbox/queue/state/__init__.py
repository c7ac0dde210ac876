"""What a lane, a head, a circuit and a chain are: rows, statements and shared decisions."""
