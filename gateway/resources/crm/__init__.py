"""The records of the CRM, one declaration per file."""
