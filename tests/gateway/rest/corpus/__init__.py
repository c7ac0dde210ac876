"""A corpus of REST calls, and what each of them is answered."""
