"""`carteiro demo`: a gateway, a receiver that misbehaves on purpose, and what passes between."""
