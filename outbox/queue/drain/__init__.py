"""The hot path: fan-out, claim, settle, and the cycle that joins them."""
