"""Stores the one-time tokens of mails, as digests: to set a new password, to verify an address."""

from base64 import urlsafe_b64encode
from typing import Literal

from gateway.records.errors import Fault, Refusal
from outbox.database.expiry import Expiry
from outbox.database.transaction import Tx
from outbox.durations import SECOND
from outbox.ids import Ids, digest_of

Kind = Literal["reset", "verify"]
LIFETIMES: dict[Kind, int] = {"reset": 3_600, "verify": 7 * 86_400}
"""Seconds from the mail to the end of its token."""

_TAKE = """
delete from customer_tokens where digest = $1 and kind = $2 and expires_at > $3
  and customer_id in (select id from customers where store_id = $4) returning customer_id
"""
EXPIRY = Expiry("customer_tokens", "digest")


def make(ids: Ids) -> str:
    """Return a new token of 256 random bits."""
    return urlsafe_b64encode(ids.token(32)).rstrip(b"=").decode()


async def add(tx: Tx, customer_id: str, kind: Kind, text: str) -> None:
    """Store a token from `make`. Earlier ones stay valid, because a mail may arrive late."""
    await tx.run(
        "insert into customer_tokens (digest, customer_id, kind, created_at, expires_at)"
        " values ($1, $2, $3, $4, $5)",
        digest_of(text), customer_id, kind, tx.now, tx.now + LIFETIMES[kind] * SECOND,
    )  # fmt: skip


async def take(tx: Tx, store_id: str, kind: Kind, text: str) -> str:
    """Use a token and all others of its customer and kind; return the customer's id.

    Raises invalid_token, the same for an unknown, a used and an expired one.
    """
    row = None
    if text.isascii():
        row = await tx.one(_TAKE, digest_of(text), kind, tx.now, store_id)
    if row is None:
        message = "This link was used or has expired; ask for another one."
        raise Refusal("invalid_token", message, faults=[Fault("token", "invalid", message)])
    customer_id = str(row["customer_id"])
    await drop(tx, customer_id, kind)
    return customer_id


async def drop(tx: Tx, customer_id: str, kind: Kind) -> None:
    """Delete all tokens of a kind of a customer."""
    await tx.run(
        "delete from customer_tokens where customer_id = $1 and kind = $2", customer_id, kind
    )
