"""Tests of the business rules."""
