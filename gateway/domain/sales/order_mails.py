"""Queues mails to buyers about their orders, in the transaction that causes them.

A row names the order and no address: the mail is written when it is sent, with the data of that
time. An attempt is counted before it starts: a process that ends in the middle of it leaves the
mail to the next attempt.
"""

from typing import Literal, NamedTuple

from gateway.domain import queued_mail
from gateway.domain.queued_mail import Queued
from gateway.domain.sales import counted_emails
from gateway.records.record import Record
from outbox.database.transaction import Tx
from outbox.durations import DAY, MINUTE

Kind = Literal["order_received", "order_paid", "order_canceled", "order_expired"]
KEPT = 2 * DAY
"""How long a mail is stored, sent or not: nobody is told news that is older."""
LEASE = 5 * MINUTE
"""Microseconds after which an attempt that did not end counts as failed."""
MOST = 20
"""Mails to one mailbox in a day, apart from those about payments: anyone can order in the name of
any address, and cancel."""

# A buyer whose contact the owner deleted gets no more mails.
_ADD = """
insert into order_mails
  (id, owner_id, order_id, contact_id, kind, created_at, attempts, due_at, mailbox)
select $1, $2, $3, $4, $5, $6, 0, $6, $10 from stores
where stores.id = $7 and stores.order_mails and exists (select 1 from contacts where id = $4)
  and $8 > (select count(*) from order_mails
    where owner_id = $2 and mailbox = $10 and created_at > $9)
on conflict (order_id, kind) do nothing
"""
_TAKE = """
update order_mails set attempts = attempts + 1, due_at = $1 + $2 where id in (
  select id from order_mails where due_at <= $1 order by due_at limit 1
  /*postgres for update skip locked*/)
returning id, order_id, kind, attempts
"""


class OrderMail(NamedTuple):
    """An attempt at a mail; `attempts` counts this one."""

    id: str
    order_id: str
    kind: Kind
    attempts: int


async def add(tx: Tx, order: Record, kind: Kind) -> None:
    """Queue the mail of an order, once, if its store sends such mails.

    The limit of a day is of the mailbox that all spellings of an email reach. It does not concern a
    payment, which strangers make for nobody.
    """
    if order["contact_id"] is None or order["store_id"] is None or _unreachable(order["email"]):
        return
    mailbox, _ = counted_emails.holders(order["email"])
    limited = kind != "order_paid" or not order["total"]
    await tx.run(
        _ADD, tx.new_id(), order.owner_id, order.id, order["contact_id"], kind, tx.now,
        order["store_id"], MOST if limited else 2**31, tx.now - DAY, mailbox,
    )  # fmt: skip


def _unreachable(email: str) -> bool:
    """Return whether an address is of the domain that never exists, as an erased buyer's."""
    return email.lower().endswith(".invalid")


async def any_due(tx: Tx) -> bool:
    """Return whether a mail is due."""
    row = await tx.one("select 1 as due from order_mails where due_at <= $1 limit 1", tx.now)
    return row is not None


async def take(tx: Tx) -> OrderMail | None:
    """Start an attempt at the mail that is due first; return None when none is due."""
    row = await tx.one(_TAKE, tx.now, LEASE)
    if row is None:
        return None
    return OrderMail(row["id"], row["order_id"], row["kind"], row["attempts"])


async def sent(tx: Tx, mail: Queued) -> None:
    """End a mail that was sent, or that nobody should get any more."""
    await tx.run("update order_mails set due_at = null where id = $1", mail.id)


async def failed(tx: Tx, mail: Queued, error: str, *, final: bool) -> bool:
    """Plan the next attempt; return whether there is one. `final`: no attempt can succeed."""
    wait = None if final else queued_mail.wait_after(mail.attempts)
    await tx.run(
        "update order_mails set due_at = $2, error = $3 where id = $1 and attempts = $4",
        mail.id, None if wait is None else tx.now + wait, error, mail.attempts,
    )  # fmt: skip
    return wait is not None


async def drop(tx: Tx, order_id: str) -> None:
    """Delete the mails of an order, whose buyer is erased."""
    await tx.run("delete from order_mails where order_id = $1", order_id)


async def purge(tx: Tx, limit: int) -> int:
    """Delete up to `limit` mails that are KEPT old; return how many."""
    return await tx.run(
        "delete from order_mails where id in (select id from order_mails where created_at < $1"
        " order by created_at limit $2)",
        tx.now - KEPT, limit,
    )  # fmt: skip
