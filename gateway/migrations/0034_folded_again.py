"""Folds emails and searched texts again, and judges phone numbers again, by the rules of 0.3.

Accounts that have one mailbox now stay apart: the later one keeps an address of its own, by which
it still signs in, and the log names both.
"""

import hashlib
import unicodedata
from collections.abc import Sequence
from typing import Any

import structlog
from msgspec import json

from gateway.records.values.emails import earlier_fold, fold_email
from gateway.records.values.folding import fold, fold_all, without_case
from gateway.records.values.formats import e164
from gateway.records.values.words import index_terms
from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx

BATCH = 500
GMAIL = ("gmail.com", "googlemail.com")
# The columns that `search` finds, the first of which sorts where the table has `sort_name`.
_SEARCHED = {
    "contacts": ("name", "email"),
    "companies": ("name", "email"),
    "customers": ("name", "email"),
    "products": ("name", "sku"),
    "stores": ("name", "hostname"),
    "categories": ("name",),
    "ebooks": ("title",),
    "orders": ("number", "name", "email"),
    "coupons": ("code",),
    "discount_modals": ("title",),
}
_UNSORTED = ("orders", "coupons", "discount_modals")
_THERE = """
/*sqlite select count(*) as n from sqlite_master where name = 'refolding'*/
/*postgres select count(*) as n from pg_tables
  where tablename = 'refolding' and schemaname = current_schema()*/
"""
# What is left to do; the last step drops it.
_WORK = """
create table refolding (
  kind text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null,
  primary key (kind, record_id)
)
"""
_LIST = "insert into refolding (kind, record_id) select '{0}', id from {0} where {1}"
# Text with more bytes than letters is not ASCII.
_FOREIGN = "/*sqlite length(cast({0} as blob))*/ /*postgres octet_length({0})*/ > length({0})"
_NEXT = "select kind, record_id from refolding order by kind, record_id limit $1"
_TERMS = "update product_terms set words = $2 where record_id = $1 and words <> $2"
_PLACES = "update product_shelves set sort_name = $2 where record_id = $1 and sort_name <> $2"
_MODALS = """
update modal_coupons set holder = $3 where owner_id = $1 and holder = $2 and not exists (
  select 1 from modal_coupons m where m.modal_id = modal_coupons.modal_id and m.holder = $3)
"""
_USES = "update coupon_uses set holder = $2 where id = $1 and (holder = $3 or holder = $4)"

log = structlog.get_logger("gateway")


async def step(tx: Tx) -> bool:
    """Fold one batch; return whether more may be left."""
    if not await _has_begun(tx):
        await _begin(tx)
    listed = await tx.all(_NEXT, BATCH)
    for kind in dict.fromkeys(row["kind"] for row in listed):
        ids = [row["record_id"] for row in listed if row["kind"] == kind]
        rows = await tx.all(f"select * from {kind} where id in {IDS}", items(ids))
        if kind != "users":
            await _columns(tx, kind, rows)
        if kind == "products":
            await _index(tx, [row for row in rows if row["store_id"] is not None])
        for row in rows:
            if kind == "users":
                await _user(tx, row)
            elif kind == "customers" and row["email"]:
                await _customer(tx, row)
            elif kind in ("contacts", "orders") and row["email"] and not row["email"].isascii():
                await _coupons(tx, kind, row)
        done = [(kind, record_id) for record_id in ids]
        await tx.many("delete from refolding where kind = $1 and record_id = $2", done)
    if len(listed) < BATCH:
        await tx.run("drop table refolding")
        return False
    return True


async def _has_begun(tx: Tx) -> bool:
    row = await tx.one(_THERE)
    return row is not None and bool(row["n"])


async def _begin(tx: Tx) -> None:
    """List the rows that may follow an older rule."""
    await tx.run(_WORK)
    for kind in ("users", *_SEARCHED):
        columns = ["email"] if kind == "users" else ["folded"]
        columns += ["email"] if kind in ("contacts", "customers", "orders") else []
        columns += ["categories"] if kind == "products" else []
        old = [_FOREIGN.format(column) for column in columns]
        old += ["phone_e164 is not null"] if kind in ("contacts", "companies") else []
        await tx.run(_LIST.format(kind, " or ".join(old)))


async def _columns(tx: Tx, kind: str, rows: Sequence[Row]) -> None:
    """Compute the columns again that follow from others."""
    changes = []
    for row in rows:
        texts = [row[column] or "" for column in _SEARCHED[kind]]
        values: dict[str, Any] = {"folded": fold_all(texts)}
        if kind not in _UNSORTED:
            values["sort_name"] = fold(texts[0])
        if kind in ("contacts", "companies"):
            values["phone_e164"] = row["phone"] and e164(row["phone"])
        if kind in ("contacts", "orders"):
            values["email_folded"] = row["email"] and fold_email(row["email"])
        if any(value != row[name] for name, value in values.items()):
            changes.append((row["id"], values))
    if changes:
        sets = ", ".join(f"{name} = ${i}" for i, name in enumerate(changes[0][1], start=2))
        await tx.many(
            f"update {kind} set {sets} where id = $1",
            [(record_id, *values.values()) for record_id, values in changes],
        )


async def _index(tx: Tx, products: Sequence[Row]) -> None:
    """Fold the words of products, and their places in the lists of their stores."""
    words, places = [], []
    for product in products:
        names = map(without_case, json.decode(product["categories"]))
        terms = index_terms(
            product["store_id"],
            (product["name"], product["sku"] or ""),
            [name for name in names if name and not name.startswith("\x1e")],
        )
        words.append((product["id"], terms))
        places.append((product["id"], fold(product["name"])))
    if words:
        await tx.many(_TERMS, words)
        await tx.many(_PLACES, places)


async def _user(tx: Tx, user: Row) -> None:
    for folded in dict.fromkeys((fold_email(user["email"]), earlier_fold(user["email"]))):
        if folded == user["folded_email"]:
            return
        other = await tx.one("select id from users where folded_email = $1", folded)
        if other is None:
            await tx.run("update users set folded_email = $2 where id = $1", user["id"], folded)
            return
        log.warning("email_taken_twice", kind="account", id=user["id"], other_id=other["id"])


async def _customer(tx: Tx, customer: Row) -> None:
    claim = await tx.one(
        "select store_id, value from customer_emails where record_id = $1", customer["id"]
    )
    if claim is None:
        return
    for folded in dict.fromkeys((fold_email(customer["email"]), earlier_fold(customer["email"]))):
        if folded == claim["value"]:
            return
        other = await tx.one(
            "select record_id from customer_emails where store_id = $1 and value = $2",
            claim["store_id"], folded,
        )  # fmt: skip
        if other is None:
            await tx.run(
                "update customer_emails set value = $2 where record_id = $1",
                customer["id"], folded,
            )  # fmt: skip
            return
        log.warning(
            "email_taken_twice", kind="client", id=customer["id"], other_id=other["record_id"]
        )


async def _coupons(tx: Tx, kind: str, row: Row) -> None:
    """Count what a person has used under the new form of the email."""
    before = unicodedata.normalize("NFC", row["email"]).strip().casefold()
    after = fold_email(row["email"])
    old, older, new = (_digest(_counted(before)), _digest(before), _digest(_counted(after)))
    if kind == "orders":
        await tx.run(_USES, row["id"], new, old, older)
    elif before.partition("@")[0] == after.partition("@")[0]:
        # Else the coupon may be that of another mailbox, which had the same form.
        for holder in dict.fromkeys((old, older)):
            await tx.run(_MODALS, row["owner_id"], holder, new)


def _counted(folded: str) -> str:
    local, at, domain = folded.rpartition("@")
    local = local.partition("+")[0] or local
    if domain in GMAIL:
        local, domain = local.replace(".", "") or local, GMAIL[0]
    return f"{local}{at}{domain}"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
