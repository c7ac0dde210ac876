"""Stores the one-time tokens of links in mails to accounts, as digests.

Opening a link uses nothing up, because mail scanners open links; only its form does.
"""

import hashlib
from typing import Literal, NamedTuple

from gateway.records.errors import Refusal
from outbox.database.expiry import Expiry
from outbox.database.transaction import Row, Tx
from outbox.durations import MINUTE

Kind = Literal["reset", "email"]
LIFETIME = 30 * MINUTE
"""From the mail to the end of its token."""

_OPEN = """
select t.digest, t.owner_id, t.email as new_email, u.email, u.name
from account_tokens t join users u on u.id = t.owner_id
where t.digest = $1 and t.kind = $2 and t.expires_at > $3 and u.disabled_at is null
"""
# Those that were sent stay, because they count.
_DROP_MAILS = """
delete from queued_mails
where owner_id = $1 and kind in ('password_reset', 'email_confirm') and due_at is not null
"""
EXPIRY = Expiry("account_tokens", "digest")


class Opened(NamedTuple):
    """What a valid token is for; `new_email` is that of a change of address."""

    owner_id: str
    email: str
    name: str
    new_email: str | None


async def add(tx: Tx, owner_id: str, kind: Kind, text: str, email: str | None = None) -> None:
    """Store a token. Earlier ones stay valid, because a mail may arrive late."""
    await tx.run(
        "insert into account_tokens (digest, owner_id, kind, email, created_at, expires_at)"
        " values ($1, $2, $3, $4, $5, $6)",
        digest_of(text), owner_id, kind, email, tx.now, tx.now + LIFETIME,
    )  # fmt: skip


async def opened(tx: Tx, kind: Kind, text: str) -> Opened | None:
    """Return what a token is for; None for an unknown, used or expired one, without a difference.

    Also None for that of a disabled account.
    """
    row = await tx.one(_OPEN, digest_of(text), kind, tx.now) if text.isascii() else None
    return None if row is None else _opened(row)


async def take(tx: Tx, kind: Kind, text: str) -> Opened:
    """Use a token. Raises forbidden, the same for an unknown, a used and an expired one."""
    found = await opened(tx, kind, text)
    # Of two at once, the second finds nothing to delete.
    if found is None or not await tx.run(
        "delete from account_tokens where digest = $1", digest_of(text)
    ):
        raise Refusal("forbidden", "This link was used or has expired.")
    return found


async def drop(tx: Tx, owner_id: str) -> None:
    """Delete all tokens of an account, and its mails that would have one when they are sent."""
    await tx.run("delete from account_tokens where owner_id = $1", owner_id)
    await tx.run(_DROP_MAILS, owner_id)


def digest_of(text: str) -> bytes:
    """Return the digest of a token, its stored form."""
    return hashlib.sha256(text.encode()).digest()


def _opened(row: Row) -> Opened:
    return Opened(row["owner_id"], row["email"], row["name"], row["new_email"])
