"""API keys: how one is made and told from junk, and the rows that remember its digest.

A key reads `crt_<8 visible>_<43 base62>`; the last 6 of the 43 are a checksum over what stands
before them, so that a mistyped key is refused without asking the database.
"""

import hashlib
import re
import zlib
from collections.abc import Sequence
from typing import Any

import msgspec

from gateway.domain.accounts import users
from gateway.records.errors import Refusal
from gateway.records.resource import Field, Form
from gateway.records.values import formats, instants, nested
from gateway.records.values.format import Read
from outbox.database.transaction import Row, Tx
from outbox.ids import Ids

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SHAPE = re.compile(r"crt_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}", re.ASCII)
VISIBLE = len("crt_") + 8
CHECKSUM = 6
SCOPES = ("read", "write")
KEPT = 90 * 86_400_000_000
"""For so long its holder is told that a key expired or was revoked, not that it is unknown."""
# Making and revoking keys all day must not fill the table.
DROP_ENDED = """
delete from api_keys where owner_id = $1 and (revoked_at is not null or expires_at <= $2)
  and id not in (
    select id from api_keys where owner_id = $1 and (revoked_at is not null or expires_at <= $2)
    order by created_at desc, id desc limit $3)
"""
_SCOPE = formats.one_of(*SCOPES)


def _scopes(value: Any, read: Read) -> list[str]:
    return nested.several(_SCOPE, value, read, len(SCOPES), least=1)


KEY = Form(
    noun="key",
    description="An API key, without its secret part.",
    fields=(
        Field("name", "name", formats.title(100), "What it is for.", "Zapier", required=True),
        Field(
            "scopes", "scopes",
            nested.composite(_scopes, nested.list_schema(_SCOPE, len(SCOPES), 1)),
            "What it may do; both unless sent.", ["read"],
        ),
        Field(
            "expiresAt", "expires_at", instants.moment(),
            "When it ends; never unless sent. A date without a time lasts until that day ends in "
            "the owner's time zone.",
            "2030-01-31",
        ),
    ),
)  # fmt: skip


def base62(number: int, length: int) -> str:
    """The last `length` base-62 digits of a number."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))


def make(ids: Ids) -> str:
    """A new key: 220 random bits in its secret part. It is shown once and never stored."""
    # Sixteen bytes more than the digits hold, so that every digit is as likely as the next.
    visible = base62(int.from_bytes(ids.token(22), "big"), 8)
    secret = base62(int.from_bytes(ids.token(44), "big"), 43 - CHECKSUM)
    head = f"crt_{visible}_{secret}"
    return head + _checksum(head)


def well_formed(text: str) -> bool:
    """Whether `text` can be a key at all: its shape and its checksum."""
    return SHAPE.fullmatch(text) is not None and _checksum(text[:-CHECKSUM]) == text[-CHECKSUM:]


def digest_of(text: str) -> bytes:
    """What is stored of a key or token."""
    return hashlib.sha256(text.encode()).digest()


def _checksum(head: str) -> str:
    return base62(zlib.crc32(head.encode()), CHECKSUM)


async def add(
    tx: Tx,
    *,
    owner_id: str,
    name: str,
    text: str,
    scopes: Sequence[str],
    expires_at: int | None,
    most: int = 0,
) -> Row:
    """Store a key that `make` gave; returns its row. Raises conflict past `most` (0: no cap)."""
    if most:
        await users.hold(tx, owner_id)
        row = await tx.one(
            """select count(*) as had from api_keys where owner_id = $1 and revoked_at is null
               and (expires_at is null or expires_at > $2)""",
            owner_id, tx.now,
        )  # fmt: skip
        if row is not None and row["had"] >= most:
            raise Refusal(
                "conflict",
                f"You have {most} API keys, as many as this installation allows; revoke one first.",
            )
        await tx.run(DROP_ENDED, owner_id, tx.now, most)
    row = await tx.one(
        """insert into api_keys
             (id, owner_id, name, visible, digest, scopes, expires_at, created_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8) returning *""",
        tx.new_id(), owner_id, name, text[:VISIBLE], digest_of(text),
        msgspec.json.encode(sorted(set(scopes))).decode(), expires_at, tx.now,
    )  # fmt: skip
    assert row is not None
    return row


async def listed(tx: Tx, owner_id: str) -> list[Row]:
    """The keys of a user that are not revoked, newest first."""
    return await tx.all(
        """select * from api_keys where owner_id = $1 and revoked_at is null
           order by created_at desc, id desc""",
        owner_id,
    )


async def one(tx: Tx, key_id: str) -> Row | None:
    """A key that is not revoked."""
    return await tx.one("select * from api_keys where id = $1 and revoked_at is null", key_id)


async def all_of(tx: Tx, owner_id: str) -> list[Row]:
    """The keys of a user, newest first; also those that ended and are still kept."""
    return await tx.all(
        "select * from api_keys where owner_id = $1 order by created_at desc, id desc", owner_id
    )


async def matching(tx: Tx, text: str, limit: int) -> list[Row]:
    """Keys whose id `text` is, that it is in full or the visible part of which it begins.

    Each with its owner's address; those that are not revoked come first.
    """
    return await tx.all(
        """select k.*, u.email from api_keys k join users u on u.id = k.owner_id
           where k.id = $1 or k.digest = $2 or substr(k.visible, 1, $3) = $4
           order by k.revoked_at is not null, k.visible, k.id limit $5""",
        text.lower(), digest_of(text), len(text), text, limit,
    )  # fmt: skip


async def revoke(tx: Tx, owner_id: str, key_id: str) -> bool:
    """End a key of this user; False when there is none to end."""
    return await tx.run(
        """update api_keys set revoked_at = $3
           where id = $1 and owner_id = $2 and revoked_at is null""",
        key_id, owner_id, tx.now,
    ) == 1  # fmt: skip


async def recognise(tx: Tx, digest: bytes) -> Row | None:
    """The key with this digest and whether its user is shut out, whatever their states."""
    return await tx.one(
        """select k.id, k.owner_id, k.scopes, k.expires_at, k.revoked_at, u.disabled_at, u.timezone
           from api_keys k join users u on u.id = k.owner_id where k.digest = $1""",
        digest,
    )


async def touch(tx: Tx, used: Sequence[tuple[str, int]]) -> None:
    """Remember when keys were last used: pairs of id and wall time."""
    await tx.many(
        """update api_keys set last_used_at = $2
           where id = $1 and (last_used_at is null or last_used_at < $2)""",
        sorted(used),
    )


async def purge(tx: Tx, limit: int) -> int:
    """Remove up to `limit` keys that expired or were revoked KEPT ago or more; how many went."""
    return await tx.run(
        """delete from api_keys where id in (
             select id from api_keys
             where (expires_at is not null or revoked_at is not null)
               and coalesce(revoked_at, expires_at) < $1
             order by coalesce(revoked_at, expires_at) limit $2)""",
        tx.now - KEPT, limit,
    )  # fmt: skip


def scopes_of(row: Row) -> frozenset[Any]:
    """The scopes in a key's row."""
    return frozenset(msgspec.json.decode(row["scopes"]))
