"""Erases a contact: the record, and the person in its events and in the log of deliveries.

A plain delete leaves both, because receivers may still need the events that wait.
"""

from gateway.domain.contacts.contacts import CONTACTS
from gateway.records import actions, store
from gateway.records.access import Actor
from outbox.database.transaction import Tx
from outbox.queue.upkeep import erasure_requests

KEPT = ("contact.deleted",)
"""Events of contacts without personal data: they tell receivers of the erasure."""


async def erase(tx: Tx, actor: Actor, contact_id: str) -> bool:
    """Erase a contact of the actor's, also one that was deleted before.

    Return whether there still was one. Raises forbidden.
    """
    there = await store.fetch(tx, CONTACTS, contact_id, lock=True) is not None
    if there:
        await actions.own(tx, actor, CONTACTS, contact_id, "write")
    await erasure_requests.request(tx, actor.owner_id, [contact_id], KEPT)
    if there:
        await actions.remove(tx, actor, CONTACTS, contact_id)
    return there
