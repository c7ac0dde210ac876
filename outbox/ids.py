"""Ids, tokens and random numbers.

Code receives an Ids as an argument and uses no other source of randomness.
"""

import hashlib
import os
import re
import threading
from collections import deque
from collections.abc import Callable

ID_LENGTH = 24
POOL = 4096
IDS_AT_ONCE = 512
"""Ids for which random bytes are drawn together: each kernel call releases the interpreter lock."""
_ID = re.compile(rf"[0-9a-fA-F]{{{ID_LENGTH}}}")


class Ids:
    """Ids and random values from one source of random bytes."""

    def __init__(self, random: Callable[[int], bytes] = os.urandom) -> None:
        self._source = random
        self._lock = threading.Lock()
        self._pool = b""
        self._used = 0
        self._digits = deque[str]()
        """Random digits for the next ids; its methods are atomic."""

    def _random(self, size: int) -> bytes:
        """Return random bytes from a pool, for the same reason."""
        with self._lock:
            if self._used + size > len(self._pool):
                self._pool = self._source(max(POOL, size))
                self._used = 0
            start = self._used
            self._used += size
            return self._pool[start : self._used]

    def new(self, wall: int, after: str = "") -> str:
        """Return 24 hex digits: 6 bytes of milliseconds of `wall` (microseconds), 6 random bytes.

        Ids cluster by time, and one cannot be guessed from another. One of the millisecond of the
        id `after` is greater than that by a random number of 4 bytes.
        """
        try:
            digits = self._digits.popleft()
        except IndexError:
            drawn = self._source(6 * IDS_AT_ONCE).hex()
            self._digits.extend(drawn[n : n + 12] for n in range(12, len(drawn), 12))
            digits = drawn[:12]
        began = f"{wall // 1000:012x}"
        if after[:12] < began:
            return f"{began}{digits}"
        return f"{int(after, 16) + 1 + int(digits[:8], 16):024x}"

    def token(self, size: int) -> bytes:
        """Return `size` random bytes, for secrets and tokens."""
        return self._source(size)

    def dice(self) -> float:
        """Return a number in [0, 1), for jitter."""
        return int.from_bytes(self._random(7), "big") / 2**56


def first_at(micros: int) -> str:
    """Return a text before every id made in this millisecond or later, and after the earlier ones.

    `micros` is microseconds since the Unix epoch, so a range of ids is a range of time.
    """
    return f"{max(micros, 0) // 1000:012x}"


def digest_of(text: str) -> bytes:
    """Return the digest of a key or token, its stored form."""
    return hashlib.sha256(text.encode()).digest()


def is_id(text: str) -> bool:
    """Return whether `text` has the form of an id: 24 hex digits of either case, ASCII."""
    return _ID.fullmatch(text) is not None
