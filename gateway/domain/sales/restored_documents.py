"""Brings quotes and invoices of an import to the state that their file has."""

from gateway.domain.sales import documents
from gateway.domain.sales.documents import Kind, Transitions
from gateway.records import actions
from gateway.records.access import Actor
from gateway.records.record import Draft, Record
from gateway.records.values import dates
from outbox.database.transaction import Tx


async def restore(tx: Tx, actor: Actor, kind: Kind, document: Record, draft: Draft) -> Record:
    """Move a document to the state of a file, through other states where that takes it.

    A sent document whose time has passed meanwhile is expired. Raises the faults of the draft,
    invalid_transition.
    """
    draft.must_hold()
    current, target = document["status"], draft.sent.get("status")
    if target is None or target == current:
        return document
    way = _way(kind.table, current, target)
    if not way:
        documents.check_transition(kind.resource.noun, kind.table, current, target)
    fields = [kind.resource.named[name] for name in kind.restored.get(target, ())]
    known = {f.column: draft.sent[f.name] for f in fields if draft.sent.get(f.name) is not None}
    stamps = [kind.stamps[state] for state in way if state in kind.stamps]
    changes = dict.fromkeys(stamps, tx.now) | {"status": target}
    changes |= {column: dates.settled(value, actor.zone) for column, value in known.items()}
    after = await actions.update(tx, actor, document, changes)
    actions.announce(tx, kind.announced.get(target, "updated"), after, before=document)
    if kind.follow is not None:
        await kind.follow(tx, actor, after)
    return after


def _way(table: Transitions, current: str, target: str) -> list[str]:
    """Return the states from `current` to `target`, the shortest way; none when there is none."""
    ways = [[state] for state in table[current]]
    for way in ways:
        if way[-1] == target:
            return way
        ways += [[*way, state] for state in table[way[-1]] if state not in way]
    return []
