"""Remembers the nonces of stores that require them, so that each signs in only once."""

from gateway.domain.accounts.api_keys import digest_of
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx


async def use(tx: Tx, store_id: str, nonce: str, expires_at: int) -> None:
    """Use a nonce whose token is valid until then (microseconds). Raises invalid_token."""
    used = await tx.run(
        "insert into used_nonces (store_id, digest, expires_at) values ($1, $2, $3)"
        " on conflict (store_id, digest) do nothing",
        store_id, digest_of(nonce), expires_at,
    )  # fmt: skip
    if not used:
        raise Refusal("invalid_token", "This sign-in was used already; sign in again.")


async def purge(tx: Tx, limit: int) -> int:
    """Delete up to `limit` nonces whose tokens expired; return how many."""
    return await tx.run(
        "delete from used_nonces where digest in (select digest from used_nonces"
        " where expires_at <= $1 order by expires_at limit $2)",
        tx.now, limit,
    )  # fmt: skip
