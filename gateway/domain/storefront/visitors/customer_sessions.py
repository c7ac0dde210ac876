"""Stores the sessions of customers; the id of a session is the claim `sid` of its token.

A token is valid only while the row of its session exists, so signing out, a new password and the
deletion of the account revoke it at once.
"""

from dataclasses import dataclass

from outbox.database.expiry import Expiry
from outbox.database.transaction import Tx
from outbox.durations import SECOND

LIFETIME = 30 * 86_400
"""Seconds."""
MOST = 20
"""Most sessions of one customer; a new one replaces the oldest."""

_FOUND = """
select c.id from customer_sessions s join customers c on c.id = s.customer_id
where s.id = $1 and c.id = $2 and c.store_id = $3 and s.expires_at > $4
"""
_OLDEST = """
delete from customer_sessions where customer_id = $1 and id not in (
  select id from customer_sessions where customer_id = $1
  order by created_at desc, id desc limit $2)
"""
EXPIRY = Expiry("customer_sessions", "id")


@dataclass(frozen=True, slots=True)
class Session:
    """A session of a customer; times in microseconds UTC."""

    id: str
    customer_id: str
    store_id: str
    created_at: int
    expires_at: int


async def start(tx: Tx, customer_id: str, store_id: str, ended: str | None = None) -> Session:
    """Start a session, and end the one that it continues (`ended`)."""
    # The lock makes concurrent sign-ins count each other's sessions.
    await tx.one(
        "select id from customers where id = $1 /*postgres for no key update*/", customer_id
    )
    if ended is not None:
        await end(tx, ended)
    await tx.run(_OLDEST, customer_id, MOST - 1)
    session = Session(tx.new_id(), customer_id, store_id, tx.now, tx.now + LIFETIME * SECOND)
    await tx.run(
        "insert into customer_sessions (id, customer_id, created_at, expires_at)"
        " values ($1, $2, $3, $4)",
        session.id, customer_id, session.created_at, session.expires_at,
    )  # fmt: skip
    return session


async def is_live(tx: Tx, session_id: str, customer_id: str, store_id: str) -> bool:
    """Return whether the session exists and belongs to this customer of this store."""
    return await tx.one(_FOUND, session_id, customer_id, store_id, tx.now) is not None


async def end(tx: Tx, session_id: str) -> None:
    """End a session."""
    await tx.run("delete from customer_sessions where id = $1", session_id)


async def end_all(tx: Tx, customer_id: str) -> None:
    """End all sessions of a customer."""
    await tx.run("delete from customer_sessions where customer_id = $1", customer_id)
