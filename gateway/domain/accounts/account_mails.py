"""Queues mails to accounts in the transaction that causes them.

A mail is written when it is sent (gateway.domain.accounts.account_letters), with the data and a
token of that time, so that a row holds no secret.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import msgspec

from gateway.domain import queued_mail
from gateway.domain.queued_mail import Queued
from outbox.database import times
from outbox.database.transaction import Tx
from outbox.durations import DAY, MINUTE

Kind = Literal[
    "password_reset", "password_changed", "email_confirm", "email_requested", "email_changed",
    "two_factor_on", "two_factor_off", "recovery_codes_new", "recovery_code_used", "codes_failing",
    "session_ended", "sessions_ended",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
Facts = Mapping[str, str]
"""Lines of a mail by the key of their label: address, browser, email, left, session."""
NO_FACTS: Facts = {}
KEPT = 2 * DAY
"""How long a mail is stored, sent or not."""
MOST = 10
"""Most mails of one kind to one account in a day."""
LEASE = 5 * MINUTE
"""Microseconds after which an attempt that did not end counts as failed."""

_ADD = """
insert into account_mails (id, owner_id, kind, address, facts, created_at, attempts, due_at)
select $1, $2, $3, $4, $5, $6, 0, $6 where $7 > (
  select count(*) from account_mails where owner_id = $2 and kind = $3 and created_at > $8)
"""
_TAKE = """
update account_mails set attempts = attempts + 1, due_at = $1 + $2 where id in (
  select id from account_mails where due_at <= $1 order by due_at limit 1
  /*postgres for update skip locked*/)
returning id, owner_id, kind, address, facts, created_at, attempts
"""


class AccountMail(NamedTuple):
    """An attempt at a mail; `attempts` counts this one."""

    id: str
    owner_id: str
    kind: Kind
    address: str | None
    facts: Facts
    created_at: int
    attempts: int


async def add(
    tx: Tx, owner_id: str, kind: Kind, facts: Facts = NO_FACTS, address: str | None = None
) -> None:
    """Queue a mail to an account, or to another `address`, unless it had MOST of the kind today."""
    await tx.run(
        _ADD,
        tx.new_id(), owner_id, kind, address, msgspec.json.encode(facts).decode(), tx.now, MOST,
        tx.now - DAY,
    )  # fmt: skip


async def take(tx: Tx) -> AccountMail | None:
    """Start an attempt at the mail that is due first; return None when none is due."""
    row = await tx.one(_TAKE, tx.now, LEASE)
    if row is None:
        return None
    values = {name: row[name] for name in AccountMail._fields}
    return AccountMail(**values | {"facts": msgspec.json.decode(row["facts"])})


async def sent(tx: Tx, mail: Queued) -> None:
    """End a mail that was sent, or that nobody can get any more; its row still counts."""
    await tx.run(
        "update account_mails set due_at = null, address = null, facts = '{}' where id = $1",
        mail.id,
    )


async def failed(tx: Tx, mail: Queued, error: str, *, final: bool) -> bool:
    """Plan the next attempt; return whether there is one. `final`: no attempt can succeed."""
    wait = None if final else queued_mail.wait_after(mail.attempts)
    await tx.run(
        "update account_mails set due_at = $2, error = $3 where id = $1 and attempts = $4",
        mail.id, None if wait is None else tx.now + wait, error, mail.attempts,
    )  # fmt: skip
    return wait is not None


async def purge(tx: Tx, limit: int) -> int:
    """Delete up to `limit` mails that are KEPT old; return how many."""
    return await tx.run(
        "delete from account_mails where id in (select id from account_mails where created_at < $1"
        " order by created_at limit $2)",
        await times.earlier(tx) - KEPT, limit,
    )  # fmt: skip
