"""Stores console sessions and the one-time link that creates the first account.

The browser has a random token; the database has only its SHA-256.
"""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Concatenate

from gateway.domain.accounts import account_mails, users
from gateway.domain.accounts.users import CheckedAccount, P, T
from gateway.domain.queued_mail import Facts
from gateway.records import audit
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from outbox.database.expiry import Expiry
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY, MINUTE

SEEN_EVERY = 5 * MINUTE
"""The last use of a session is written at most every five minutes."""
LINK_LIFETIME = DAY
MOST = 100
"""Most sessions of one user; a new one replaces the least recently used."""
LINKS = Expiry("first_account_links", "digest")
EXPIRY = Expiry("sessions", "id")


@dataclass(frozen=True, slots=True)
class Session:
    """A signed-in browser; times in microseconds UTC."""

    id: str
    owner_id: str
    address: str
    agent: str
    created_at: int
    seen_at: int
    expires_at: int
    reveals: bool
    """Whether a new secret is stored for a single display (see `reveal`)."""
    user_name: str
    user_email: str
    zone: str
    language: str | None
    """None: as the browser asks."""
    two_factor: bool
    """Whether the account has two-factor authentication."""

    def stale(self, now: int) -> bool:
        """Return whether the time of the last use is due to be written."""
        return now - self.seen_at > SEEN_EVERY


SELECT = """
select s.id, s.owner_id, s.address, s.agent, s.created_at, s.seen_at, s.expires_at,
  s.reveal is not null as reveals, u.name as user_name, u.email as user_email,
  u.timezone as zone, u.language, u.two_factor_at is not null as two_factor
from sessions s join users u on u.id = s.owner_id
where u.disabled_at is null and s.expires_at > $1
"""


async def start(
    tx: Tx, account: CheckedAccount, token: str, *, lifetime: int, address: str, agent: str,
    notice: Facts | None = None,
) -> str:  # fmt: skip
    """Create a session for `lifetime` microseconds; return its id.

    With the facts of a `notice` the account gets a mail about the browser. Raises unauthenticated
    when the account changed since its password was checked.
    """
    await users.lock_checked(tx, account)
    owner_id = account.id
    await tx.run(
        """
        delete from sessions where owner_id = $1 and id not in (
          select id from sessions where owner_id = $1 order by seen_at desc limit $2)
        """,
        owner_id,
        MOST - 1,
    )
    session_id = tx.new_id()
    await tx.run(
        """
        insert into sessions
          (id, owner_id, digest, address, agent, created_at, seen_at, expires_at)
        values ($1, $2, $3, $4, $5, $6, $6, $7)
        """,
        session_id, owner_id, digest(token), address[:100], agent[:300], tx.now,
        tx.now + lifetime,
    )  # fmt: skip
    audit.record(tx, Actor(owner_id, "session"), "signed_in", "session", session_id)
    if notice is not None:
        await account_mails.add(tx, owner_id, "new_browser", notice)
    return session_id


_LIVES = """
select s.id from sessions s join users u on u.id = s.owner_id
where s.id = $1 and s.expires_at > $2 and u.disabled_at is null
"""


async def while_live(
    tx: Tx, session: Session, unit: Callable[Concatenate[Tx, P], Awaitable[T]],
    *args: P.args, **kwargs: P.kwargs,
) -> T:  # fmt: skip
    """Run `unit` for a session, whose end waits for it. Raises unauthenticated when it ended."""
    await users.lock(tx, session.owner_id)
    row = await tx.one(_LIVES, session.id, tx.now)
    if row is None:
        raise Refusal("unauthenticated", "Your session has ended; sign in again.")
    return await unit(tx, *args, **kwargs)


async def find(tx: Tx, token: str) -> Session | None:
    """Return the session of a token; None when it ended, expired, or its user is disabled."""
    row = await tx.one(f"{SELECT} and s.digest = $2", tx.now, digest(token))
    return None if row is None else _session(row)


async def seen(tx: Tx, session_id: str) -> None:
    """Record the time of use of a session."""
    await tx.run("update sessions set seen_at = $2 where id = $1", session_id, tx.now)


async def listed(tx: Tx, owner_id: str) -> list[Session]:
    """Return the active sessions of a user, the last used first."""
    rows = await tx.all(
        f"{SELECT} and s.owner_id = $2 order by s.seen_at desc, s.id", tx.now, owner_id
    )
    return [_session(row) for row in rows]


async def keep_reveal(tx: Tx, session_id: str, sealed: bytes) -> None:
    """Store an encrypted new secret, which the next page of this session shows."""
    await tx.run("update sessions set reveal = $2 where id = $1", session_id, sealed)


async def reveal(tx: Tx, session_id: str) -> bytes | None:
    """Return the stored encrypted secret of a session, or None."""
    row = await tx.one("select reveal from sessions where id = $1", session_id)
    return None if row is None or row["reveal"] is None else bytes(row["reveal"])


async def forget_reveal(tx: Tx, session_id: str) -> None:
    """Delete the stored secret of a session after its display."""
    await tx.run("update sessions set reveal = null where id = $1", session_id)


async def end(tx: Tx, owner_id: str, session_id: str) -> None:
    """End one session of a user."""
    if await tx.run("delete from sessions where id = $1 and owner_id = $2", session_id, owner_id):
        audit.record(tx, Actor(owner_id, "session"), "signed_out", "session", session_id)


async def end_all(tx: Tx, owner_id: str, actor: Actor | None = None) -> int:
    """End all sessions of a user; return how many.

    `actor` does it; None is a command on the server.
    """
    count = await tx.run("delete from sessions where owner_id = $1", owner_id)
    if count:
        audit.record(tx, actor or Actor(owner_id, "system"), "signed_out", "session", None)
    return count


async def offer_first_account(tx: Tx, token: str) -> bool:
    """Store a link token for the first account, valid for a day; False when a user exists."""
    if await tx.one("select id from users limit 1") is not None:
        return False
    await tx.run(
        "insert into first_account_links (digest, created_at, expires_at) values ($1, $2, $3)",
        digest(token),
        tx.now,
        tx.now + LINK_LIFETIME,
    )
    return True


async def first_account_open(tx: Tx, token: str) -> bool:
    """Return whether `token` can still create the first account."""
    row = await tx.one(
        "select digest from first_account_links where digest = $1 and expires_at > $2",
        digest(token),
        tx.now,
    )
    return row is not None and await tx.one("select id from users limit 1") is None


async def take_first_account(tx: Tx, token: str) -> None:
    """Consume the link and all others; the caller then creates the user in this unit.

    Raises forbidden when it is unknown, used or expired, or when a user exists.
    """
    if not await first_account_open(tx, token):
        raise Refusal("forbidden", "This link was used or has expired.")
    # A concurrent second use waits here, and then finds no link or an existing user.
    deleted = await tx.run("delete from first_account_links")
    if not deleted or await tx.one("select id from users limit 1") is not None:
        raise Refusal("forbidden", "This link was used or has expired.")


async def end_others(tx: Tx, owner_id: str, session_id: str) -> int:
    """End all sessions of a user but this one; return how many."""
    return await tx.run(
        "delete from sessions where owner_id = $1 and id <> $2", owner_id, session_id
    )


def digest(token: str) -> bytes:
    """Return the digest of a token, its stored form."""
    return hashlib.sha256(token.encode()).digest()


def _session(row: Row) -> Session:
    values = {name: row[name] for name in Session.__dataclass_fields__}
    return Session(**values | {name: bool(row[name]) for name in ("reveals", "two_factor")})
