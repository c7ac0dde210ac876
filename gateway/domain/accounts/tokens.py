"""Issues and stores bearer tokens: 256 random bits, stored as digests."""

import base64
from collections.abc import Awaitable, Callable
from typing import Concatenate, NamedTuple

from gateway.domain.accounts import users
from gateway.domain.accounts.users import CheckedAccount, P, T
from gateway.records import audit
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from outbox.database.expiry import Expiry
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY, SECOND
from outbox.ids import Ids, digest_of

PREFIX = "cst_"
KEPT = DAY
"""How long an expired token is stored, and so reported as expired and not as unknown."""

MOST = 20
"""Most tokens of one user; a further sign-in succeeds and revokes the oldest."""


class Issued(NamedTuple):
    """A new token, shown once, and the wall time at which it expires."""

    text: str
    expires_at: int


def make(ids: Ids) -> str:
    """Return a new token's text; the prefix lets secret scanners find a leaked one."""
    return PREFIX + base64.urlsafe_b64encode(ids.token(32)).rstrip(b"=").decode()


async def add(tx: Tx, account: CheckedAccount, *, text: str, lifetime: int) -> Issued:
    """Store a token from `make` for `lifetime` seconds; above MOST delete the oldest.

    Raises unauthenticated when the account changed since its password was checked.
    """
    await users.lock_checked(tx, account)
    owner_id = account.id
    await tx.run(
        """delete from tokens where owner_id = $1 and digest not in (
             select digest from tokens where owner_id = $1
             order by created_at desc, digest limit $2)""",
        owner_id,
        MOST - 1,
    )
    expires_at = tx.now + lifetime * SECOND
    await tx.run(
        "insert into tokens (digest, owner_id, created_at, expires_at) values ($1, $2, $3, $4)",
        digest_of(text), owner_id, tx.now, expires_at,
    )  # fmt: skip
    audit.record(tx, Actor(owner_id, "bearer"), "signed_in", "token", None)
    return Issued(text, expires_at)


async def while_live(
    tx: Tx, owner_id: str, text: str, unit: Callable[Concatenate[Tx, P], Awaitable[T]],
    *args: P.args, **kwargs: P.kwargs,
) -> T:  # fmt: skip
    """Run `unit` for a token, whose end waits for it. Raises unauthenticated when it was revoked.

    A credential that is remembered may have ended, and a body may be on its way for long.
    """
    await users.lock(tx, owner_id)
    if await tx.one("select 1 as found from tokens where digest = $1", digest_of(text)) is None:
        raise Refusal("unauthenticated", "The token was revoked; sign in again.")
    return await unit(tx, *args, **kwargs)


async def recognise(tx: Tx, digest: bytes) -> Row | None:
    """Return the token with this digest and its user's state, including expired tokens."""
    return await tx.one(
        """select t.owner_id, t.expires_at, u.disabled_at, u.timezone
           from tokens t join users u on u.id = t.owner_id where t.digest = $1""",
        digest,
    )


async def revoke(tx: Tx, digest: bytes) -> bool:
    """Revoke a token; return False when there is none."""
    row = await tx.one("delete from tokens where digest = $1 returning owner_id", digest)
    if row is not None:
        audit.record(tx, Actor(row["owner_id"], "bearer"), "signed_out", "token", None)
    return row is not None


EXPIRY = Expiry("tokens", "digest", kept=KEPT)
