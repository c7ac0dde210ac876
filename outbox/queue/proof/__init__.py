"""Check whether the recorded attempts are what was sent."""
