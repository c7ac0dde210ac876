"""Limits the memory that clients can occupy, in total and per client."""

from collections import Counter


class Budget:
    """Bytes in use: at most `total` for all holders together and `share` for each."""

    def __init__(self, total: int, share: int) -> None:
        self.total = total
        self.share = share
        self.held = 0
        self._shares: Counter[str] = Counter()

    def take(self, holder: str, size: int, *, must: bool = False) -> bool:
        """Take `size` bytes if they are free; return whether they were. `must` always takes."""
        if not must and (self.held + size > self.total or self._shares[holder] + size > self.share):
            return False
        self.held += size
        self._shares[holder] += size
        return True

    def give(self, holder: str, size: int) -> None:
        """Give back `size` bytes."""
        self.held -= size
        self._shares[holder] -= size
        if self._shares[holder] <= 0:
            del self._shares[holder]

    def spent(self, holder: str) -> bool:
        """Return whether `holder` has no bytes left."""
        return self.held >= self.total or self._shares.get(holder, 0) >= self.share
