"""Reads the audit log of an owner, and deletes its old entries."""
