"""Finds texts outside the catalogues, and what two catalogues do not have in common."""

from __future__ import annotations
