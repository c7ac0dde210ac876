"""Stores the links by which customers open quotes and invoices, as digests of their tokens."""

from typing import NamedTuple

from gateway.domain.cells import credential_suffix
from outbox.database.expiry import Expiry
from outbox.database.transaction import Tx
from outbox.durations import DAY
from outbox.ids import digest_of

PATH = "/documents"
DAYS = 180
LIFETIME = DAYS * DAY
"""From the link to its end."""
EXPIRY = Expiry("document_links", "digest")
MOST = 100
"""Links of one document that are valid; a further one ends the oldest."""

_ADD = """
insert into document_links (digest, owner_id, resource, record_id, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6)
"""
_END_OLDEST = """
delete from document_links where digest in (
  select digest from document_links where record_id = $1 order by created_at desc, digest
  limit 1000 offset $2)
"""
_OPEN = """
select l.owner_id, l.resource, l.record_id, u.timezone, u.language
from document_links l join users u on u.id = l.owner_id
where l.digest = $1 and l.expires_at > $2 and u.disabled_at is null
"""


class Opened(NamedTuple):
    """What a valid link opens, and how its owner reads; without a language as the browser asks."""

    owner_id: str
    resource: str
    record_id: str
    zone: str
    language: str | None


async def add(tx: Tx, owner_id: str, resource: str, record_id: str, token: str) -> int:
    """Store a link to a document; return when it ends. Earlier ones stay valid."""
    ends = tx.now + LIFETIME
    digest = digest_of(credential_suffix.bare(token))
    await tx.run(_ADD, digest, owner_id, resource, record_id, tx.now, ends)
    await tx.run(_END_OLDEST, record_id, MOST)
    return ends


async def opened(tx: Tx, token: str) -> Opened | None:
    """Return what a link opens; None for an unknown, ended or expired one, without a difference."""
    if not token.isascii():
        return None
    row = await tx.one(_OPEN, digest_of(credential_suffix.bare(token)), tx.now)
    return None if row is None else Opened(*(row[name] for name in (
        "owner_id", "resource", "record_id", "timezone", "language",
    )))  # fmt: skip


async def count(tx: Tx, record_id: str) -> int:
    """Return how many links of a document are valid."""
    row = await tx.one(
        "select count(*) as n from document_links where record_id = $1 and expires_at > $2",
        record_id,
        tx.now,
    )
    return int(row["n"]) if row else 0


async def end(tx: Tx, record_id: str) -> int:
    """End all links of a document; return how many there were."""
    return await tx.run("delete from document_links where record_id = $1", record_id)
