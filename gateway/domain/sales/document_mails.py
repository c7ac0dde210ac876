"""Queues the mails that bring a quote or an invoice to a customer.

The document, its PDF file and the link are those of the time at which the mail is sent.
"""

from typing import Literal, get_args

from gateway.records.errors import rate_limited
from gateway.records.record import Record
from gateway.records.values import emails
from outbox.database.transaction import Tx
from outbox.durations import DAY

Kind = Literal["quote_sent", "invoice_sent"]
KINDS: tuple[Kind, ...] = get_args(Kind)
KEPT = 2 * DAY
"""How long a mail is stored, sent or not."""
MOST, MOST_TO_ONE = 500, 10
"""Mails of an owner in a day, and those to one mailbox: nobody shall flood others in our name."""

# Those that were sent stay, because they count.
_DROP = "delete from queued_mails where document_id = $1 and due_at is not null"
_ADD = """
insert into queued_mails
  (id, owner_id, kind, document_id, contact_id, mailbox, address, created_at, attempts, due_at,
   expires_at)
select $1, $2, $3, $4, $5, $6, $7, $8, 0, $8, $9
where $10 > (select count(*) from queued_mails
    where owner_id = $2 and kind = $3 and created_at > $12)
  and $11 > (select count(*) from queued_mails
    where owner_id = $2 and mailbox = $6 and created_at > $12 and document_id is not null)
"""


async def drop(tx: Tx, document_id: str) -> None:
    """Delete the mails of a document that are not sent yet."""
    await tx.run(_DROP, document_id)


async def add(tx: Tx, document: Record, address: str) -> None:
    """Queue the mail of a document to an address. Raises rate_limited above MOST in a day."""
    kind: Kind = "quote_sent" if document.resource.noun == "quote" else "invoice_sent"
    mailbox, _ = emails.holders(address)
    added = await tx.run(
        _ADD, tx.new_id(), document.owner_id, kind, document.id, document["contact_id"], mailbox,
        address, tx.now, tx.now + KEPT, MOST, MOST_TO_ONE, tx.now - DAY,
    )  # fmt: skip
    if not added:
        raise rate_limited(
            f"A day has at most {MOST} mails with a document, and {MOST_TO_ONE} to one address; "
            "send a link.",
            3600,
        )
