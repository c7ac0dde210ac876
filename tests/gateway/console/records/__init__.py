"""The pages of records: every resource, and what orders, reviews and stores have of their own."""
