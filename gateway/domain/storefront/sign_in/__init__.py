"""Signs customers up and in, by password and by identity provider, and changes their accounts."""
