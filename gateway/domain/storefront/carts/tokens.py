"""Makes the tokens of visitors' carts; each belongs to one store.

Stores may share a host, and so its cookies. A page of one store must neither learn the token of a
cart in another one nor choose it, so no store takes a token that was made for another.
"""

import hashlib
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable

RANDOM = 24
"""Random bytes of a token, which nobody can guess."""
_MARK = 8
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


def make(store_id: str, random: bytes) -> str:
    """Return the token of RANDOM random bytes for a store."""
    return urlsafe_b64encode(random + _mark(store_id, random)).rstrip(b"=").decode()


def of_store(store_id: str, tokens: Iterable[str]) -> str | None:
    """Return the first of the tokens that belongs to the store, or None."""
    return next((token for token in tokens if _belongs(store_id, token)), None)


def _belongs(store_id: str, token: str) -> bool:
    if _TOKEN.fullmatch(token) is None:
        return False
    random = urlsafe_b64decode(f"{token}=")[:RANDOM]
    return make(store_id, random) == token


def _mark(store_id: str, random: bytes) -> bytes:
    """Return the bytes that bind a token to its store. They are no secret."""
    return hashlib.sha256(f"cart of {store_id} ".encode() + random).digest()[:_MARK]
