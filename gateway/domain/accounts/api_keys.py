"""Generates API keys, checks their form, and stores their digests.

The form of a key is `crt_<8 visible>_<43 base62>`; the last 6 of the 43 are a checksum of the
characters before them, so that a mistyped key is refused without a query. In a cell it has a mark
at its end (see gateway.domain.cells.credential_suffix).
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from gateway.domain.accounts import users
from gateway.domain.cells.credential_suffix import MARK
from gateway.records import audit
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.resource import Field, Form
from gateway.records.values import formats, instants, nested
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY
from outbox.ids import Ids, digest_of

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SHAPE = re.compile(rf"(crt_[0-9A-Za-z]{{8}}_[0-9A-Za-z]{{43}})(?:{MARK})?", re.ASCII)
VISIBLE = len("crt_") + 8
CHECKSUM = 6
SCOPES = ("read", "write")
RESOURCES = (
    "contacts", "companies", "deals", "tasks", "activities", "invoices", "quotes", "products",
    "orders", "stores", "categories", "ebooks", "reviews", "coupons", "clients", "discount-modals",
    "reports", "deliveries", "webhooks",
)  # fmt: skip
"""What a key can be for: the resources of the catalogue, and what gateway.rest.api_areas adds."""
KEPT = 90 * DAY
"""How long an expired or revoked key is stored, and so reported as such and not as unknown."""
# A client that creates and revokes keys all the time must not fill the table.
DROP_ENDED = """
delete from api_keys where owner_id = $1 and (revoked_at is not null or expires_at <= $2)
  and id not in (
    select id from api_keys where owner_id = $1 and (revoked_at is not null or expires_at <= $2)
    order by created_at desc, id desc limit $3)
"""
_SCOPE = formats.one_of(*SCOPES)
_RESOURCE = formats.one_of(*RESOURCES)


def _scopes(value: Any, from_json: bool) -> list[str]:
    return formats.several(_SCOPE, value, from_json, len(SCOPES), least=1)


def _resources(value: Any, from_json: bool) -> list[str]:
    return formats.several(_RESOURCE, value, from_json, len(RESOURCES), least=1)


KEY = Form(
    noun="key",
    description="An API key, without its secret part.",
    fields=(
        Field("name", "name", formats.title(100), "Name of the key.", "Zapier", required=True),
        Field(
            "scopes", "scopes",
            formats.composite(_scopes, nested.list_schema(_SCOPE, len(SCOPES), 1)),
            "Permissions of the key; by default both.", ["read"],
        ),
        Field(
            "resources", "resources",
            formats.composite(
                _resources, nested.list_schema(_RESOURCE, len(RESOURCES), 1)
            ),
            "What of the API the key is for; by default all of it.", ["contacts", "reports"],
        ),
        Field(
            "expiresAt", "expires_at", instants.moment(),
            "When the key expires; by default never. A date without a time means the end of that "
            "day in the owner's time zone.",
            "2030-01-31",
        ),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyDraft:
    """A key to be stored: its `text` is from `make`; without `resources` it is for all of them."""

    name: str
    text: str
    scopes: Sequence[str]
    expires_at: int | None
    resources: Sequence[str] | None = None


def base62(number: int, length: int) -> str:
    """Return the last `length` base-62 digits of a number."""
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(ALPHABET[digit])
    return "".join(reversed(digits))


def make(ids: Ids) -> str:
    """Return a new key with 220 random bits in its secret part, which is never stored."""
    # Sixteen more bytes than the digits need make all digits equally likely.
    visible = base62(int.from_bytes(ids.token(22), "big"), 8)
    secret = base62(int.from_bytes(ids.token(44), "big"), 43 - CHECKSUM)
    head = f"crt_{visible}_{secret}"
    return head + _checksum(head)


def well_formed(text: str) -> bool:
    """Return whether the form and the checksum of `text` are those of a key."""
    match = SHAPE.fullmatch(text)
    return match is not None and _checksum(match[1][:-CHECKSUM]) == match[1][-CHECKSUM:]


def _checksum(head: str) -> str:
    return base62(zlib.crc32(head.encode()), CHECKSUM)


async def add(
    tx: Tx, owner_id: str, key: KeyDraft, *, most: int = 0, actor: Actor | None = None
) -> Row:
    """Store a new key; return its row. Raises conflict above `most` (0: no limit).

    `actor` creates it; None is a command on the server.
    """
    if most:
        await users.lock(tx, owner_id)
        row = await tx.one(
            """select count(*) as had from api_keys where owner_id = $1 and revoked_at is null
               and (expires_at is null or expires_at > $2)""",
            owner_id,
            tx.now,
        )
        if row is not None and row["had"] >= most:
            raise Refusal(
                "conflict",
                f"You have {most} API keys, the limit of this installation; revoke one first.",
            )
        await tx.run(DROP_ENDED, owner_id, tx.now, most)
    row = await tx.one(
        """insert into api_keys
             (id, owner_id, name, visible, digest, scopes, expires_at, created_at, resources)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9) returning *""",
        tx.new_id(), owner_id, key.name, key.text[:VISIBLE], digest_of(key.text),
        msgspec.json.encode(sorted(set(key.scopes))).decode(), key.expires_at, tx.now,
        None
        if key.resources is None
        else msgspec.json.encode(sorted(set(key.resources))).decode(),
    )  # fmt: skip
    assert row is not None
    audit.record(tx, actor or Actor(owner_id, "system"), "created", "key", row["id"])
    return row


async def listed(tx: Tx, owner_id: str) -> list[Row]:
    """Return the keys of a user without revoked ones, newest first."""
    return await tx.all(
        """select * from api_keys where owner_id = $1 and revoked_at is null
           order by created_at desc, id desc""",
        owner_id,
    )


async def one(tx: Tx, key_id: str) -> Row | None:
    """Return the key with this id, or None when it is unknown or revoked."""
    return await tx.one("select * from api_keys where id = $1 and revoked_at is null", key_id)


async def all_of(tx: Tx, owner_id: str) -> list[Row]:
    """Return the keys of a user, newest first, including expired and revoked ones."""
    return await tx.all(
        "select * from api_keys where owner_id = $1 order by created_at desc, id desc", owner_id
    )


async def matching(tx: Tx, text: str, limit: int) -> list[Row]:
    """Return the keys whose id or full text is `text`, or whose visible part starts with it.

    Each row has the owner's e-mail address; revoked keys come last.
    """
    return await tx.all(
        """select k.*, u.email from api_keys k join users u on u.id = k.owner_id
           where k.id = $1 or k.digest = $2 or substr(k.visible, 1, $3) = $4
           order by k.revoked_at is not null, k.visible, k.id limit $5""",
        text.lower(), digest_of(text), len(text), text, limit,
    )  # fmt: skip


async def revoke(tx: Tx, owner_id: str, key_id: str, actor: Actor | None = None) -> bool:
    """Revoke a key of this user; return False when there is none to revoke.

    `actor` revokes it; None is a command on the server.
    """
    revoked = await tx.run(
        """update api_keys set revoked_at = $3
           where id = $1 and owner_id = $2 and revoked_at is null""",
        key_id,
        owner_id,
        tx.now,
    )
    if revoked:
        audit.record(tx, actor or Actor(owner_id, "system"), "revoked", "key", key_id)
    return revoked == 1


async def recognise(tx: Tx, digest: bytes) -> Row | None:
    """Return the key with this digest and its user's state, including revoked keys."""
    return await tx.one(
        """select k.id, k.owner_id, k.scopes, k.expires_at, k.revoked_at, k.resources,
             u.disabled_at, u.timezone
           from api_keys k join users u on u.id = k.owner_id where k.digest = $1""",
        digest,
    )


async def touch(tx: Tx, used: Sequence[tuple[str, int]]) -> None:
    """Record when keys were last used: pairs of id and wall time."""
    await tx.many(
        """update api_keys set last_used_at = $2
           where id = $1 and (last_used_at is null or last_used_at < $2)""",
        sorted(used),
    )


async def purge(tx: Tx, limit: int) -> int:
    """Delete up to `limit` keys that expired or were revoked at least KEPT ago; return how many."""
    return await tx.run(
        """delete from api_keys where id in (
             select id from api_keys
             where (expires_at is not null or revoked_at is not null)
               and coalesce(revoked_at, expires_at) < $1
             order by coalesce(revoked_at, expires_at) limit $2)""",
        tx.now - KEPT,
        limit,
    )


def scopes_of(row: Row) -> frozenset[Any]:
    """Return the scopes of a key's row."""
    return frozenset(msgspec.json.decode(row["scopes"]))


def resources_of(row: Row) -> frozenset[str] | None:
    """Return what the key of a row is for; None for all."""
    text = row["resources"]
    return None if text is None else frozenset(msgspec.json.decode(text))
