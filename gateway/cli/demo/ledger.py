"""What was written against what arrived: pure functions over the inboxes' counts."""

from collections.abc import Iterable, Sequence

from gateway.cli.demo.receiver import Inbox

Expected = Sequence[tuple[str, str]]
"""(event name, record id) of every acknowledged write."""


def due(inbox: Inbox, expected: Expected) -> set[tuple[str, str]]:
    """What this inbox must get."""
    return {pair for pair in expected if pair[0] in inbox.events}


def waiting(inbox: Inbox, expected: Expected) -> int:
    """How much of it has not been accepted yet."""
    return len(due(inbox, expected) - inbox.arrived.keys())


def faults(inboxes: Iterable[Inbox], expected: Expected, *, complete: bool = True) -> list[str]:
    """Everything that keeps the account from balancing, a line each; empty when it does.

    Not `complete`: what has not arrived may still be on its way, and is no fault.
    """
    found = []
    for inbox in inboxes:
        wanted = due(inbox, expected)
        for event, record in sorted(wanted - inbox.arrived.keys()) if complete else ():
            found.append(f"{inbox.name}: {event} of {record} never arrived")
        for event, record in sorted(inbox.arrived.keys() - wanted):
            found.append(f"{inbox.name}: {event} of {record} was not expected")
        for event_id, times in inbox.accepted.items():
            if times > 1:
                found.append(f"{inbox.name}: event {event_id} arrived {times} times")
        found.extend(f"{inbox.name}: {fault}" for fault in inbox.bad)
    return found
