"""How fast a client sends a body or takes a response; the server looks once a second.

Only the time counts in which the server waits for the client. A client may be behind a least rate
by some seconds, by a gap or because it is slow. The rate is that of Apache's mod_reqtimeout;
a first time of 5 seconds, as other servers have, cut mobile clients that were in a tunnel.
"""

BRISK_RATE = 65_536
"""A client of so many bytes a second lets nobody wait."""
LONGEST_SECONDS = 3_600.0
"""The longest time for a body, at whatever speed."""


class Transfer:
    """The speed of one transfer: `moved` is a count of bytes that only grows."""

    __slots__ = ("_at", "_behind", "_from", "_moved", "_waited")

    def __init__(self, began: float, moved: int) -> None:
        self._at = began
        self._from = self._moved = moved
        self._waited = self._behind = 0.0

    def behind(self, now: float, moved: int, rate: int, *, awaited: bool) -> float:
        """Look, and return the seconds by which the client is behind `rate` bytes a second.

        A burst makes up for what was before it, and buys no time later. Rate 0 takes any byte.
        """
        if awaited:
            self._waited += now - self._at
            self._behind += now - self._at
        if moved != self._moved:
            made_up = (moved - self._moved) / rate if rate else self._behind
            self._behind = max(0.0, self._behind - made_up)
        self._at, self._moved = now, moved
        return self._behind

    @property
    def lasted(self) -> float:
        """The seconds for which the server has waited for the client."""
        return self._waited

    @property
    def since(self) -> float:
        """Since when a brisk client would have been done with what has moved."""
        return self._at - max(0.0, self._waited - (self._moved - self._from) / BRISK_RATE)
