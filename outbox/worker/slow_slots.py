"""Places for the sends of slow webhooks beyond the first of each, divided by need.

Owners get equal parts, and so do the webhooks of one owner; what one of them does not need goes to
the others. A webhook that uses more than its part starts no more until its own sends end.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class _Owner:
    """How many webhooks need each number of places, and what they need and use in all."""

    needs: list[int]
    needed: int = 0
    used: int = 0


class SlowSlots:
    """Divides places; one webhook gets `of_webhook` at most, one owner `of_owner`."""

    def __init__(self, of_webhook: int, of_owner: int) -> None:
        self.used = 0
        self._of_webhook = of_webhook
        self._of_owner = of_owner
        self._owners: dict[str, _Owner] = {}
        self._needs = [0] * (of_owner + 1)
        """How many owners need each number of places."""
        self._needed = 0

    def change(self, owner_id: str, needs: tuple[int, int], used: tuple[int, int]) -> None:
        """Record that one webhook now needs and uses the second number instead of the first."""
        owner = self._owners.get(owner_id)
        if owner is None:
            owner = self._owners[owner_id] = _Owner([0] * (self._of_webhook + 1))
        if needs[0]:
            owner.needs[needs[0]] -= 1
        if needs[1]:
            owner.needs[needs[1]] += 1
        before = min(owner.needed, self._of_owner)
        owner.needed += needs[1] - needs[0]
        after = min(owner.needed, self._of_owner)
        self._needs[before] -= before > 0
        self._needs[after] += after > 0
        self._needed += after - before
        owner.used += used[1] - used[0]
        self.used += used[1] - used[0]
        if not owner.needed and not owner.used:
            del self._owners[owner_id]

    def part(self, owner_id: str, places: int) -> int:
        """Return how many of `places` this owner may use."""
        if self._needed <= places:
            return self._of_owner
        return _level(self._needs, places)

    def share(self, owner_id: str, part: int) -> int:
        """Return how many places each webhook of this owner may use when it may use `part`."""
        owner = self._owners.get(owner_id)
        if owner is None or owner.needed <= part:
            return min(self._of_webhook, part)
        return _level(owner.needs, part)

    def used_by(self, owner_id: str) -> int:
        owner = self._owners.get(owner_id)
        return 0 if owner is None else owner.used


def _level(needs: Sequence[int], places: int) -> int:
    """Return the most that each may have so that all fit; `needs[n]` of them need n places."""
    above = sum(needs)
    for level in range(1, len(needs)):
        places -= above
        if places < 0:
            return level - 1
        above -= needs[level]
    return len(needs) - 1
