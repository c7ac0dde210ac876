"""Contacts and companies, and the tasks and activities about them."""
