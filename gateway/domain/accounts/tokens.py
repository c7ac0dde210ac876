"""Bearer tokens: opaque, 256 random bits, stored as digests, given for a password."""

import base64
from typing import NamedTuple

from gateway.domain.accounts import users
from gateway.domain.accounts.keys import digest_of
from outbox.database.plans import by_index
from outbox.database.transaction import Row, Tx
from outbox.ids import Ids

PREFIX = "cst_"
KEPT = 86_400_000_000
"""For so long its holder is told that it has expired, not that it is unknown."""

MOST = 20
"""Tokens that one user may have: a sign-in more must not be refused, so the oldest gives way."""


class Issued(NamedTuple):
    """A token as its holder gets it, once, and the wall time at which it ends."""

    text: str
    expires_at: int


def make(ids: Ids) -> str:
    """A new token's text; the prefix lets secret scanners find a leaked one."""
    return PREFIX + base64.urlsafe_b64encode(ids.token(32)).rstrip(b"=").decode()


async def add(tx: Tx, *, owner_id: str, text: str, lifetime: int) -> Issued:
    """Store a token that `make` gave, for `lifetime` seconds; of MOST others the oldest ends."""
    await users.hold(tx, owner_id)
    await tx.run(
        """delete from tokens where owner_id = $1 and digest not in (
             select digest from tokens where owner_id = $1
             order by created_at desc, digest limit $2)""",
        owner_id, MOST - 1,
    )  # fmt: skip
    expires_at = tx.now + lifetime * 1_000_000
    await tx.run(
        "insert into tokens (digest, owner_id, created_at, expires_at) values ($1, $2, $3, $4)",
        digest_of(text), owner_id, tx.now, expires_at,
    )  # fmt: skip
    return Issued(text, expires_at)


async def recognise(tx: Tx, digest: bytes) -> Row | None:
    """The token with this digest and whether its user is shut out, expired ones too."""
    return await tx.one(
        """select t.owner_id, t.expires_at, u.disabled_at, u.timezone
           from tokens t join users u on u.id = t.owner_id where t.digest = $1""",
        digest,
    )


async def revoke(tx: Tx, digest: bytes) -> bool:
    """End a token; False when there was none."""
    return await tx.run("delete from tokens where digest = $1", digest) == 1


PURGE = """
delete from tokens where digest in (
  select digest from tokens where expires_at < $1 order by expires_at limit $2)
"""


async def purge(tx: Tx, limit: int) -> int:
    """Remove up to `limit` tokens that ended a day ago or more; the number removed."""
    await by_index(tx)
    return await tx.run(PURGE, tx.now - KEPT, limit)
