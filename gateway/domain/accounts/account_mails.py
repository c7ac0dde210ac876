"""Queues mails to accounts in the transaction that causes them.

gateway.domain.accounts.account_letters writes them. Their facts are lines by the key of their
label: address, browser, email, left, session.
"""

from typing import Literal, get_args

import msgspec

from gateway.domain.accounts.account_tokens import LIFETIME
from gateway.domain.queued_mail import NO_FACTS, Facts
from outbox.database.transaction import Tx
from outbox.durations import DAY

Kind = Literal[
    "password_reset", "password_changed", "email_confirm", "email_requested", "email_changed",
    "two_factor_on", "two_factor_off", "recovery_codes_new", "recovery_code_used", "codes_failing",
    "session_ended", "sessions_ended", "new_browser",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
KEPT = 2 * DAY
"""How long a mail is stored, sent or not."""
MOST = 10
"""Most mails of one kind to one account in a day."""

_ADD = """
insert into queued_mails
  (id, owner_id, kind, address, facts, created_at, attempts, due_at, expires_at)
select $1, $2, $3, $4, $5, $6, 0, $6, $9 where $7 > (
  select count(*) from queued_mails where owner_id = $2 and kind = $3 and created_at > $8)
or not exists (
  select 1 from queued_mails where owner_id = $2 and kind = $3 and created_at > $10)
"""


async def add(
    tx: Tx, owner_id: str, kind: Kind, facts: Facts = NO_FACTS, address: str | None = None
) -> None:
    """Queue a mail to an account, or to another `address`, unless it had MOST of the kind today.

    One for a new password is queued in any case when the links of the others have ended.
    """
    # Anybody may ask for a new password, and must not use up the links of the account.
    pause = LIFETIME if kind == "password_reset" else DAY
    await tx.run(
        _ADD,
        tx.new_id(), owner_id, kind, address, msgspec.json.encode(facts).decode(), tx.now, MOST,
        tx.now - DAY, tx.now + KEPT, tx.now - pause,
    )  # fmt: skip
