"""Implements the business rules, one package per subject, independent of the doors."""
