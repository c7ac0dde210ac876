"""Values: how each is checked and kept, and its JSON form."""
