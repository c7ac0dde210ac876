"""Memory that clients can make the server hold: so many bytes in all, and a share for each."""

from collections import Counter


class Budget:
    """Bytes held at a time: `total` of all holders together, `share` of one."""

    def __init__(self, total: int, share: int) -> None:
        self.total = total
        self.share = share
        self.held = 0
        self._shares: Counter[str] = Counter()

    def take(self, holder: str, size: int, *, must: bool = False) -> bool:
        """Hold `size` bytes more, if there is room; `must` takes them in any case."""
        if not must and (self.held + size > self.total or self._shares[holder] + size > self.share):
            return False
        self.held += size
        self._shares[holder] += size
        return True

    def give(self, holder: str, size: int) -> None:
        """Let go of what was taken."""
        self.held -= size
        self._shares[holder] -= size
        if self._shares[holder] <= 0:
            del self._shares[holder]

    def spent(self, holder: str) -> bool:
        """Whether nothing is left for `holder`."""
        return self.held >= self.total or self._shares.get(holder, 0) >= self.share
