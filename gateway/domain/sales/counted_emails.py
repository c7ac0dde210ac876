"""Folds emails that reach the same person, to count what each person uses."""

import hashlib

from gateway.records.values.emails import fold_email

DOTTED = {"gmail.com": "gmail.com", "googlemail.com": "gmail.com"}
"""Providers that ignore dots before the @, with the name under which they are counted."""


def counted_email(email: str) -> str:
    """Return the form in which an email is counted: without case, `+tag` and ignored dots."""
    folded = fold_email(email)
    local, at, domain = folded.rpartition("@")
    local = local.partition("+")[0] or local
    if domain in DOTTED:
        local, domain = local.replace(".", "") or local, DOTTED[domain]
    return f"{local}{at}{domain}"


def holders(email: str) -> tuple[bytes, bytes]:
    """Return the digest under which the coupons of a person count, and that of earlier releases."""
    counted, folded = (
        hashlib.sha256(text.encode()).digest() for text in (counted_email(email), fold_email(email))
    )
    return counted, folded
