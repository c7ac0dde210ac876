"""Persons (LGPD): what is stored about one, its export, its erasure with a certificate."""
