"""Who visits a store: a visitor or a customer, with a session."""
