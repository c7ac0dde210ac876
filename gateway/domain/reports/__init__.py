"""Computes reports over many records of one owner, one report per module."""
