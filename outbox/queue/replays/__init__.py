"""What people send again: one delivery, a selection, or many with a job."""
