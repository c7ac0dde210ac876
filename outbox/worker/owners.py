"""Owners as a worker knows them: their sends in slots and their turns. In memory, per worker."""

from collections.abc import Callable, Iterator, Mapping

from outbox.queue.state.fair_shares import Owner, Rank, Search, Shares

REMEMBERED = 20_000
FURTHER_SHARE = 8
"""This fraction (1/n) of the slots comes on top of them, for owners with few sends."""


class Owners(Mapping[str, Owner]):
    """Counts sends in slots, and the turns, of each owner."""

    def __init__(self) -> None:
        self._owners: dict[str, Owner] = {}
        self._turns = 0
        self._search = Search()

    def start(self, owner_id: str) -> None:
        """Count a send that starts: it uses a slot, and it is a turn of its owner."""
        owner = self._owners.get(owner_id)
        if owner is None:
            if len(self._owners) >= REMEMBERED:
                # The others start anew.
                self._owners = {one: each for one, each in self._owners.items() if each.held}
            owner = self._owners[owner_id] = Owner()
        self._turns += 1
        owner.turn = self._turns
        owner.served += 1
        owner.held += 1

    def release(self, owner_id: str) -> None:
        """Count a send that uses its slot no more."""
        self._owners[owner_id].held -= 1

    def shares(self, slots: int, rest: int, rank: Callable[[str], Rank]) -> Shares:
        """Return what a claim needs; `rest` of the slots are free, or so many more are in use."""
        further = max(slots // FURTHER_SHARE + min(rest, 0), 0)
        return Shares(further, self, rank=rank, search=self._search)

    def __getitem__(self, owner_id: str) -> Owner:
        return self._owners[owner_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._owners)

    def __len__(self) -> int:
        return len(self._owners)
