"""Declares contacts, companies, tasks and activities."""
