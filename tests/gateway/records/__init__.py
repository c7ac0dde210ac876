"""Tests of records and values."""
