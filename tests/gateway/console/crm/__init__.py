"""Tests of the pages on which an owner moves records on."""
