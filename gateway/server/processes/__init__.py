"""Several processes of one node: a supervisor starts them, and they answer as one server."""
