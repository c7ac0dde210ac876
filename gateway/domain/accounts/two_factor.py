"""Stores two-factor authentication: the sealed secret of an account, and its recovery codes.

An account with it signs in with its password and a code. Each code is valid once: the account is
locked while one is checked, so that of two requests at the same time the second finds it used.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from gateway.domain.accounts import account_mails, codes, sessions, users
from gateway.domain.accounts.users import CheckedAccount
from gateway.domain.queued_mail import NO_FACTS, Facts
from gateway.records import audit
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from outbox.database.sql import insert
from outbox.database.transaction import Row, Tx
from outbox.durations import SECOND
from outbox.webhooks.secrets import KeyRing, SealBroken

AUDITED = "two-factor"
"""The word of the audit log for it; the id is that of the account."""
WAITS = (0, 0, 0, 0, 0, 30, 60, 120, 300, 900)
"""Seconds until the next code of an app is checked, by the number of wrong ones in a row; the last
value repeats. Recovery codes never wait: they are too long to guess."""
FAILING = 5
"""After so many wrong codes in a row, and after each so many more, the account gets a mail."""
Result = Literal["right", "wrong", "wait", "none"]
"""`none`: the account has no two-factor authentication, or may not sign in."""

_FIND = "select * from two_factors where owner_id = $1"
_START = """
insert into two_factors (owner_id, secret, started_at) values ($1, $2, $3)
on conflict (owner_id) do update set secret = excluded.secret, started_at = excluded.started_at
  where two_factors.confirmed_at is null
"""
_CONFIRM = """
update two_factors set confirmed_at = $2, last_step = $3, failures = 0, next_at = 0
where owner_id = $1 and confirmed_at is null
"""
_USE = "delete from recovery_codes where owner_id = $1 and digest = $2"
_LEFT = "select count(*) as n from recovery_codes where owner_id = $1"
_FOLLOW = """
update two_factors set last_step = $2, failures = 0, next_at = 0 where owner_id = $1
"""
_FAIL = "update two_factors set failures = $2, next_at = $3 where owner_id = $1"


class TwoFactorState(NamedTuple):
    """How far an account is; `secret` only until it is confirmed, None when no key decrypts it."""

    started: bool = False
    confirmed_at: int | None = None
    secret: bytes | None = None
    codes_left: int = 0


class Checked(NamedTuple):
    """The result of a code; `seconds` to wait."""

    result: Result
    seconds: int = 0


async def standing(tx: Tx, ring: KeyRing, owner_id: str) -> TwoFactorState:
    """Return how far an account is."""
    row = await tx.one(_FIND, owner_id)
    if row is None:
        return TwoFactorState()
    if row["confirmed_at"] is None:
        return TwoFactorState(True, secret=_opened(row, ring))
    left = await tx.one(_LEFT, owner_id)
    return TwoFactorState(True, row["confirmed_at"], codes_left=left["n"] if left else 0)


async def start(tx: Tx, ring: KeyRing, owner_id: str, secret: bytes) -> None:
    """Store a secret that is not confirmed yet. Raises conflict when one is."""
    if not await tx.run(_START, owner_id, ring.seal(secret, owner_id), tx.now):
        raise Refusal("conflict", "Two-factor authentication is already on; turn it off first.")


async def stop(tx: Tx, owner_id: str) -> None:
    """Delete a secret that is not confirmed."""
    await tx.run("delete from two_factors where owner_id = $1 and confirmed_at is null", owner_id)


async def confirm(
    tx: Tx, ring: KeyRing, actor: Actor, code: str, recovery: Sequence[str], session_id: str,
    facts: Facts,
) -> bool:  # fmt: skip
    """Turn it on with a code of the started secret; return whether the code is right.

    All tokens and other sessions end, which began with a password alone.
    """
    owner_id = actor.owner_id
    await users.lock(tx, owner_id)
    row = await tx.one(_FIND, owner_id)
    secret = None if row is None or row["confirmed_at"] is not None else _opened(row, ring)
    text = codes.plain(code)
    step = codes.step_of(secret, text, tx.now, 0) if secret and codes.is_of_app(text) else None
    if step is None:
        return False
    await tx.run(_CONFIRM, owner_id, tx.now, step)
    await tx.run("update users set two_factor_at = $2 where id = $1", owner_id, tx.now)
    await _store(tx, owner_id, recovery)
    await sessions.end_others(tx, owner_id, session_id)
    await tx.run("delete from tokens where owner_id = $1", owner_id)
    audit.record(tx, actor, "created", AUDITED, owner_id)
    await account_mails.add(tx, owner_id, "two_factor_on", facts)
    return True


async def check(
    tx: Tx, ring: KeyRing, owner_id: str, code: str, facts: Facts,
    account: CheckedAccount | None = None,
) -> Checked:  # fmt: skip
    """Check a code of the app or a recovery code, and use it up. It raises nothing: attempts count.

    `account` is how it was when its password was checked, if that was before.
    """
    await users.lock(tx, owner_id)
    user = await users.one(tx, owner_id)
    row = await tx.one(_FIND, owner_id)
    if (
        user is None or user["disabled_at"] is not None or row is None
        or row["confirmed_at"] is None or account not in (None, users.as_checked(user))
    ):  # fmt: skip
        return Checked("none")
    text = codes.plain(code)
    if not codes.is_of_app(text):
        return Checked("right" if await _recovered(tx, owner_id, text, facts) else "wrong")
    if row["next_at"] > tx.now:
        return Checked("wait", -((tx.now - row["next_at"]) // SECOND))
    secret = _opened(row, ring)
    if secret is None:
        # It may be the right code, of an owner whose secret was lost with its key: count nothing.
        return Checked("wrong")
    step = codes.step_of(secret, text, tx.now, row["last_step"])
    if step is not None:
        await tx.run(_FOLLOW, owner_id, step)
        return Checked("right")
    failures = row["failures"] + 1
    wait = WAITS[min(failures, len(WAITS) - 1)] * SECOND
    await tx.run(_FAIL, owner_id, failures, tx.now + wait)
    if failures % FAILING == 0:
        await account_mails.add(tx, owner_id, "codes_failing", facts)
    return Checked("wrong")


async def renew(tx: Tx, actor: Actor, recovery: Sequence[str], facts: Facts) -> None:
    """Replace the recovery codes, used and unused, with new ones."""
    await tx.run("delete from recovery_codes where owner_id = $1", actor.owner_id)
    await _store(tx, actor.owner_id, recovery)
    audit.record(tx, actor, "updated", AUDITED, actor.owner_id, ["recoveryCodes"])
    await account_mails.add(tx, actor.owner_id, "recovery_codes_new", facts)


async def end(tx: Tx, owner_id: str, actor: Actor | None = None, facts: Facts = NO_FACTS) -> bool:
    """Turn it off; return whether it was on. `actor` does it; None is a command on the server."""
    await users.lock(tx, owner_id)
    await tx.run("delete from recovery_codes where owner_id = $1", owner_id)
    await tx.run("delete from two_factors where owner_id = $1", owner_id)
    if not await tx.run(
        "update users set two_factor_at = null where id = $1 and two_factor_at is not null",
        owner_id,
    ):
        return False
    audit.record(tx, actor or Actor(owner_id, "system"), "deleted", AUDITED, owner_id)
    await account_mails.add(tx, owner_id, "two_factor_off", facts)
    return True


async def _recovered(tx: Tx, owner_id: str, code: str, facts: Facts) -> bool:
    if not await tx.run(_USE, owner_id, codes.digest_of(owner_id, code)):
        return False
    left = await tx.one(_LEFT, owner_id)
    audit.record(tx, Actor(owner_id, "session"), "updated", AUDITED, owner_id, ["recoveryCodes"])
    facts = {**facts, "left": str(left["n"] if left else 0)}
    await account_mails.add(tx, owner_id, "recovery_code_used", facts)
    return True


async def _store(tx: Tx, owner_id: str, recovery: Sequence[str]) -> None:
    rows = [(owner_id, codes.digest_of(owner_id, code)) for code in recovery]
    await insert(tx, "recovery_codes", ("owner_id", "digest"), rows)


def _opened(row: Row, ring: KeyRing) -> bytes | None:
    """Return the secret, None when no key decrypts it."""
    try:
        return ring.open(bytes(row["secret"]), row["owner_id"])
    except SealBroken:
        return None
