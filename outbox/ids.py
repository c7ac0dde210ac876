"""Where ids, tokens and dice come from. Everything else is handed an Ids."""

import os
import threading
from collections.abc import Callable

ID_LENGTH = 24
POOL = 4096


class Ids:
    """Ids and random values from one source of random bytes."""

    def __init__(self, random: Callable[[int], bytes] = os.urandom) -> None:
        self._source = random
        self._lock = threading.Lock()
        self._pool = b""
        self._used = 0

    def _random(self, size: int) -> bytes:
        """Random bytes out of a pool: asking the kernel each time gives up the interpreter lock."""
        with self._lock:
            if self._used + size > len(self._pool):
                self._pool = self._source(max(POOL, size))
                self._used = 0
            start = self._used
            self._used += size
            return self._pool[start : self._used]

    def new(self, wall: int) -> str:
        """24 hex digits: 6 bytes of milliseconds (from `wall`, microseconds), 6 random bytes.

        They cluster by time, and one cannot be guessed from another.
        """
        return f"{wall // 1000:012x}{self._random(6).hex()}"

    def token(self, size: int) -> bytes:
        """`size` random bytes, for secrets and tokens."""
        return self._source(size)

    def dice(self) -> float:
        """A number in [0, 1), for jitter."""
        return int.from_bytes(self._random(7), "big") / 2**56


def is_id(text: str) -> bool:
    """Whether `text` has the form of an id: 24 lower- or upper-case hex digits, ASCII."""
    return len(text) == ID_LENGTH and all(c in "0123456789abcdefABCDEF" for c in text)
