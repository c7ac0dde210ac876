"""Computes the codes of two-factor authentication: those of an app (RFC 6238), recovery codes."""

import base64
import hashlib
import hmac
import unicodedata
from collections.abc import Sequence

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.hotp import HOTP
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from outbox.durations import SECOND
from outbox.ids import Ids

SECRET_BYTES = 20
"""The length of SHA-1, which RFC 4226 recommends; every app knows it, and not every app longer."""
DIGITS = 6
HASH = SHA1()  # noqa: S303 - RFC 6238 names it, and many apps know no other
STEP_SECONDS = 30
DRIFT = 1
"""Steps that the clock of a phone may be off in each direction."""
RECOVERY_CODES = 10
RECOVERY_LETTERS = 16
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""That of Crockford: 5 bits a letter, without the letters that look like another."""
_ALIKE = str.maketrans("oil", "011")
LONGEST = 64
"""Characters of a typed code that are looked at."""


def new_secret(ids: Ids) -> bytes:
    """Return a new shared secret."""
    return ids.token(SECRET_BYTES)


def spelled(secret: bytes) -> str:
    """Return a secret as apps take it by hand: base32 in groups of four."""
    text = base64.b32encode(secret).decode()
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def address_of(secret: bytes, account: str, issuer: str) -> str:
    """Return the `otpauth:` address of a secret, which apps read from a QR code."""
    totp = TOTP(secret, DIGITS, HASH, STEP_SECONDS, enforce_key_length=False)
    return totp.get_provisioning_uri(account, issuer)


def plain(typed: str) -> str:
    """Return a typed code without what people and phones put between and around its characters."""
    text = unicodedata.normalize("NFKC", typed[:LONGEST]).lower()
    return "".join(letter for letter in text if letter.isalnum())


def is_of_app(code: str) -> bool:
    """Return whether a plain code has the form of an app's."""
    return len(code) == DIGITS and code.isascii() and code.isdigit()


def step_of(secret: bytes, code: str, now: int, after: int) -> int | None:
    """Return the step of a plain code, None for a wrong one and for one of a used step.

    `now` is microseconds UTC; no step up to `after` counts, because a code is valid once.
    """
    here = now // (STEP_SECONDS * SECOND)
    hotp = HOTP(secret, DIGITS, HASH, enforce_key_length=False)
    valid_step = None
    for step in range(here - DRIFT, here + DRIFT + 1):
        # All steps are compared, so that the time says nothing.
        if hmac.compare_digest(hotp.generate(max(0, step)), code.encode()) and step > after:
            valid_step = step
    return valid_step


def new_recovery_codes(ids: Ids) -> Sequence[str]:
    """Return new recovery codes of 80 random bits each, in groups of four letters."""
    return [_recovery_code(ids) for _ in range(RECOVERY_CODES)]


def digest_of(owner_id: str, code: str) -> bytes:
    """Return the digest of a recovery code of an account, its stored form."""
    letters = plain(code).translate(_ALIKE)
    return hashlib.sha256(f"{owner_id}\0{letters}".encode("utf-8", "surrogatepass")).digest()


def _recovery_code(ids: Ids) -> str:
    number = int.from_bytes(ids.token(RECOVERY_LETTERS * 5 // 8), "big")
    letters = "".join(ALPHABET[number >> 5 * at & 31] for at in range(RECOVERY_LETTERS))
    return "-".join(letters[at : at + 4] for at in range(0, RECOVERY_LETTERS, 4))
