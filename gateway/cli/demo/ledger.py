"""Compares written events with received events: pure functions over the inboxes' counts."""

from collections.abc import Iterable, Sequence

from gateway.cli.demo.receiver import Inbox

Expected = Sequence[tuple[str, str]]
"""(event name, record id) of every acknowledged write."""


def due(inbox: Inbox, expected: Expected) -> set[tuple[str, str]]:
    """Return the events that this inbox must receive."""
    return {pair for pair in expected if pair[0] in inbox.events}


def waiting(inbox: Inbox, expected: Expected) -> int:
    """Return the number of events that the inbox has not accepted yet."""
    return len(due(inbox, expected) - inbox.arrived.keys())


def faults(inboxes: Iterable[Inbox], expected: Expected, *, complete: bool = True) -> list[str]:
    """Return all differences, a line each; empty when there are none.

    Unless `complete`, an event that has not arrived is not a fault, as it may still arrive, and
    neither is an event that nobody expected, as its write may not have been heard of yet.
    """
    found = []
    for inbox in inboxes:
        wanted = due(inbox, expected)
        for event, record in sorted(wanted - inbox.arrived.keys()) if complete else ():
            found.append(f"{inbox.name}: {event} of {record} never arrived")
        for event, record in sorted(inbox.arrived.keys() - wanted) if complete else ():
            found.append(f"{inbox.name}: {event} of {record} is unexpected")
        for event_id, times in inbox.accepted.items():
            if times > 1:
                found.append(f"{inbox.name}: event {event_id} arrived {times} times")
        found.extend(f"{inbox.name}: {fault}" for fault in inbox.bad)
    return found
