"""Records and values."""
