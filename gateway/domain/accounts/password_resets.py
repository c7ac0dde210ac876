"""Lets a user whose password is forgotten set a new one by a link in a mail.

A request stores the typed address and looks for no account, so that it takes as long and does the
same for an unknown one. The sender of mails looks later, on its own time.
"""

from gateway.domain.accounts import account_mails, account_tokens, sessions, users
from gateway.domain.accounts.account_tokens import LIFETIME
from gateway.domain.queued_mail import Facts
from gateway.records.audit import Actor
from gateway.records.values.emails import fold_email
from outbox.database.expiry import Expiry
from outbox.database.transaction import Tx

MOST = 3
"""Most requests for one address within LIFETIME; further ones get the same answer and no mail."""
AT_ONCE = 50
"""Requests of one transaction."""

_ADD = """
insert into reset_requests (id, email, created_at, due_at)
select $1, $2, $3, $3 where $4 > (
  select count(*) from reset_requests where email = $2 and created_at > $5)
"""
_TAKE = """
update reset_requests set due_at = null where id in (
  select id from reset_requests where due_at <= $1 order by due_at limit $2
  /*postgres for update skip locked*/)
returning email, created_at
"""
EXPIRY = Expiry("reset_requests", "id", "created_at", LIFETIME)


async def request(tx: Tx, email: str) -> None:
    """Store a request for a link to `email`, which needs to be no account's."""
    folded = fold_email(email)[: users.LONGEST_EMAIL]
    await tx.run(_ADD, tx.new_id(), folded, tx.now, MOST, tx.now - LIFETIME)


async def any_due(tx: Tx) -> bool:
    """Return whether a request waits for its mail."""
    row = await tx.one("select 1 as due from reset_requests where due_at <= $1 limit 1", tx.now)
    return row is not None


async def queue_mails(tx: Tx) -> None:
    """Queue the mails of the AT_ONCE requests that are due first, where an account has the address.

    Those older than a link works get none.
    """
    for row in await tx.all(_TAKE, tx.now, AT_ONCE):
        user = await users.by_email(tx, row["email"])
        recent = row["created_at"] > tx.now - LIFETIME
        if user is not None and user["disabled_at"] is None and recent:
            await account_mails.add(tx, user["id"], "password_reset")


async def set_password(tx: Tx, token: str, password_hash: str, facts: Facts) -> None:
    """Use a token to set a new password; all sessions and tokens of the account end.

    Raises forbidden, the same for an unknown, a used and an expired token.
    """
    found = await account_tokens.take(tx, "reset", token)
    actor = Actor(found.owner_id, "system", cause="mail")
    await users.set_password(tx, found.owner_id, password_hash, actor, facts)
    await sessions.end_all(tx, found.owner_id, actor)
