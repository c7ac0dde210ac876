"""Queues mails to buyers about their orders, in the transaction that causes them.

A row names the order and no address.
"""

from typing import Literal, get_args

from gateway.records.record import Record
from gateway.records.values import emails
from outbox.database.transaction import Tx
from outbox.durations import DAY

Kind = Literal["order_received", "order_paid", "order_canceled", "order_expired"]
KINDS: tuple[Kind, ...] = get_args(Kind)
KEPT = 2 * DAY
"""How long a mail is stored, sent or not: nobody is told news that is older."""
MOST = 20
"""Mails to one mailbox in a day, apart from those about payments: anyone can order in the name of
any address, and cancel."""

# A buyer whose contact the owner deleted gets no more mails.
_ADD = """
insert into queued_mails
  (id, owner_id, order_id, contact_id, kind, created_at, attempts, due_at, mailbox, expires_at)
select $1, $2, $3, $4, $5, $6, 0, $6, $10, $11 from stores
where stores.id = $7 and stores.order_mails and exists (select 1 from contacts where id = $4)
  and $8 > (select count(*) from queued_mails
    where owner_id = $2 and mailbox = $10 and created_at > $9)
on conflict (order_id, kind) where order_id is not null do nothing
"""


async def add(tx: Tx, order: Record, kind: Kind) -> None:
    """Queue the mail of an order, once, if its store sends such mails.

    The limit of a day is of the mailbox that all spellings of an email reach. It does not concern a
    payment, which strangers make for nobody.
    """
    if order["contact_id"] is None or order["store_id"] is None or _unreachable(order["email"]):
        return
    mailbox, _ = emails.holders(order["email"])
    limited = kind != "order_paid" or not order["total"]
    await tx.run(
        _ADD, tx.new_id(), order.owner_id, order.id, order["contact_id"], kind, tx.now,
        order["store_id"], MOST if limited else 2**31, tx.now - DAY, mailbox,
        tx.now + KEPT,
    )  # fmt: skip


def _unreachable(email: str) -> bool:
    """Return whether an address is of the domain that never exists, as an erased buyer's."""
    return email.lower().endswith(".invalid")


async def drop(tx: Tx, order_id: str) -> None:
    """Delete the mails of an order, whose buyer is erased."""
    await tx.run("delete from queued_mails where order_id = $1", order_id)
