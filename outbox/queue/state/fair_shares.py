"""Divide places among due lanes: owners take turns, and so do the lanes of each owner.

The owner with the fewest sends comes first, then the one whose last turn was longest ago. When all
slots are in use, an owner with few sends still gets a further place. How few depends on how many
of these places are left, so that some stay for the owners who come next: an owner without any send
does not wait for slots that hanging webhooks of others use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from heapq import heapify, heappop, heapreplace
from typing import Protocol

FEW = 4
"""An owner may use further places while his sends times this are fewer than those left."""
OTHERS_SHARE = 4
"""One in this many places of an owner goes to other webhooks while quick ones wait too."""


class Rank(IntEnum):
    """How a webhook responds: quickly in the last minute; unknown; or a slow send is open."""

    QUICK = 0
    OTHER = 1
    SLOW = 2


@dataclass(slots=True)
class Owner:
    """An owner as a worker knows him: his sends in slots, his last turn, and his turns so far."""

    held: int = 0
    turn: int = 0
    served: int = 0


@dataclass(slots=True)
class Search:
    """The last owner found by the searches among healthy and among failing lanes."""

    healthy: str = ""
    failing: str = ""


def _unknown(_: str) -> Rank:
    return Rank.OTHER


_NEW = Owner()


@dataclass(frozen=True, slots=True)
class Shares:
    """What a worker knows about owners and webhooks, in live views that are read-only here.

    `further` are places beyond the slots. `added` counts, by owner, what was claimed since `owners`
    was read. Claims change `search`.
    """

    further: int = 0
    owners: Mapping[str, Owner] = field(default_factory=dict)
    added: Mapping[str, int] = field(default_factory=dict)
    rank: Callable[[str], Rank] = _unknown
    search: Search = field(default_factory=Search)


class Lane(Protocol):
    """A due lane: the rest of its window, and the places requested for it."""

    webhook_id: str
    owner_id: str
    window: int
    requested: int


class ClaimSlots:
    """The places that one claim or one fan-out may use."""

    def __init__(self, slots: int, further: int, shares: Shares) -> None:
        self.left = slots
        """Slots that are left."""
        self.further = further
        self.shares = shares
        self._sends: dict[str, int] = {}

    def sends(self, owner_id: str) -> int:
        """Return how many sends this owner has, including those that got a place here."""
        before = self.shares.owners.get(owner_id, _NEW).held + self.shares.added.get(owner_id, 0)
        return before + self._sends.get(owner_id, 0)

    def turn(self, owner_id: str) -> tuple[int, int]:
        """Return the place of this owner in the turns: the smallest one comes first."""
        return self.sends(owner_id), self.shares.owners.get(owner_id, _NEW).turn

    def open_to(self, owner_id: str) -> bool:
        """Return whether a send of this owner gets a place."""
        return self.left > 0 or self.sends(owner_id) * FEW < self.further

    def take(self, owner_id: str) -> bool:
        """Take a place for a send of this owner; return whether there was one."""
        if not self.open_to(owner_id):
            return False
        if self.left > 0:
            self.left -= 1
        else:
            self.further -= 1
        self._sends[owner_id] = self._sends.get(owner_id, 0) + 1
        return True


def divide(due: Sequence[Lane], places: ClaimSlots, most: int) -> int:
    """Request at most `most` places for lanes, within their windows; return how many.

    `due` is in the order of the lanes' turns.
    """
    lines: dict[str, _Line] = {}
    for lane in due:
        if lane.requested < lane.window:
            line = lines.get(lane.owner_id)
            if line is None:
                owner = places.shares.owners.get(lane.owner_id, _NEW)
                line = lines[lane.owner_id] = _Line(owner)
            line.add(lane, places.shares.rank(lane.webhook_id))
    turns = [(*places.turn(owner_id), number, owner_id) for number, owner_id in enumerate(lines)]
    heapify(turns)
    count = 0
    while turns and count < most:
        sends, turn, number, owner_id = turns[0]
        # If the owner with the fewest sends gets no place, no owner gets one.
        if not places.take(owner_id):
            break
        count += 1
        if lines[owner_id].next():
            heapreplace(turns, (sends + 1, turn, number, owner_id))
        else:
            heappop(turns)
    return count


class _Line:
    """The lanes of one owner that wait for places."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self._served = owner.served
        self._lanes: tuple[deque[Lane], deque[Lane], deque[Lane]] = (deque(), deque(), deque())

    def add(self, lane: Lane, rank: Rank) -> None:
        self._lanes[rank].append(lane)

    def next(self) -> bool:
        """Request a place for the lane whose turn it is; return whether any lane wants more."""
        quick, others, slow = self._lanes
        self._served += 1
        lanes = quick or others or slow
        if quick and others and self._served % OTHERS_SHARE == 0:
            lanes = others
        lane = lanes.popleft()
        lane.requested += 1
        if lane.requested < lane.window:
            lanes.append(lane)
        return bool(quick or others or slow)
