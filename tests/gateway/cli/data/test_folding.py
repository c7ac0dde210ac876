"""An upgrade folds emails and names again, and judges phone numbers again, by the present rules."""

from __future__ import annotations

import hashlib
from typing import Any

from gateway.domain.accounts import users
from gateway.domain.storefront.visitors import customers
from gateway.records.values.emails import holders
from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate, migrate_at_once
from outbox.database.migration_files import read_migrations
from outbox.database.sql import insert
from outbox.database.transaction import Tx
from outbox.ids import Ids
from tests.support.databases import SOURCES

OWNER, STORE = "0" * 24, "5" * 24
RECORD: dict[str, Any] = {"owner_id": OWNER, "version": 1, "created_at": 1}
SORTED = {"sort_name": "-", "folded": "-"}
ORDER = dict.fromkeys(("subtotal", "discount", "shipping", "total", "expires_at"), 0) | {
    "status": "paid", "currency": "BRL", "items": "[]", "payment_method": "pix",
}  # fmt: skip
PRODUCT = {
    "price": 1, "currency": "BRL", "images": "[]", "active": True, "published": True,
    "store_id": STORE, "stock": 1,
}  # fmt: skip


def before(email: str) -> bytes:
    """Return the holder of a coupon by the rules of 0.2."""
    return hashlib.sha256(email.casefold().encode()).digest()


ROWS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("users", {
            "id": f"{n:024x}", "email": email, "folded_email": email.casefold(), "name": "-",
            "password_hash": "-", "created_at": 1, "updated_at": 1,
        })
        for n, email in enumerate(
            ("Ana@Exämple.de", "ana@xn--exmple-cua.de", "straße@x.co", "bia@ünder.de", "c@x.co")
        )
    ),
    *(
        ("customers", RECORD | SORTED | {
            "id": f"{n:024x}", "store_id": STORE, "name": "Ewa", "email": email,
            "email_verified": True, "accepts_marketing": False,
        })
        for n, email in enumerate(("josé@é.co", "josé@xn--9ca.co", "zoë@straße.de"))
    ),
    *(
        ("customer_emails", {"store_id": STORE, "value": value, "record_id": f"{n:024x}"})
        for n, value in enumerate(("josé@é.co", "josé@xn--9ca.co", "zoë@strasse.de"))
    ),
    *(
        ("contacts", RECORD | {
            "id": f"{n:024x}", "name": name, "email": email, "email_folded": email.casefold(),
            "phone": phone, "phone_e164": "+5533334444", "tags": "[]", "source": "api",
            "folded": folded, "sort_name": "-",
        })
        for n, (name, email, phone, folded) in enumerate((
            ("Øyvind", "o@x.co", "3333-4444", "øyvind"), ("José", "josé@é.co", None, "jose"),
            ("Ana", "a@x.co", "(11) 98888-7777", "ana"),
        ))
    ),
    ("orders", RECORD | ORDER | {
        "id": "1" * 24, "number": "1", "name": "Łucja", "email": "Ana@Exämple.de",
        "folded": "łucja",
    }),
    ("orders", RECORD | ORDER | {
        "id": "2" * 24, "number": "2", "name": "Ana", "email": "A@X.co", "folded": "ana",
    }),
    ("tasks", RECORD | {
        "id": "6" * 24, "title": "Ligação", "priority": "low", "completed": False,
    }),
    ("coupon_uses", {
        "id": "1" * 24, "owner_id": OWNER, "coupon_id": "3" * 24, "state": "redeemed",
        "created_at": 1, "holder": before("Ana@Exämple.de"),
    }),
    ("products", RECORD | PRODUCT | {
        "id": "4" * 24, "name": "Sofá Łódź", "sku": "X", "slug": "sofa-odz", "folded": "sofa łodz",
        "categories": '["Łóżka"]', "sort_name": "sofa łodz",
    }),
    ("product_terms", {"record_id": "4" * 24, "store_id": STORE, "words": " łodz "}),
    ("product_shelves", {
        "record_id": "4" * 24, "value": "łozka", "store_id": STORE, "created_at": 1,
        "sort_name": "sofa łodz", "price": 1,
    }),
]  # fmt: skip


async def as_before(tx: Tx) -> None:
    """Make the schema and rows of the version before."""
    files = read_migrations("gateway", dict(SOURCES)["gateway"])
    first = next(m.number for m in files if m.name.endswith("_order_emails"))
    await migrate_at_once(
        tx, SOURCES, {name: first - 1 if name == "gateway" else 10_000 for name, _ in SOURCES}
    )
    for table, row in ROWS:
        await insert(tx, table, tuple(row), [tuple(row.values())])


async def test_an_upgrade_folds_rows_again(target: str) -> None:
    db = await database.open(target, clock=SystemClock(), ids=Ids())
    await db.write(as_before)
    await migrate(db, SOURCES)

    async def column(sql: str) -> list[Any]:
        return [row[0] for row in await db.read(lambda tx: tx.all(sql))]

    assert await column("select folded_email from users order by id") == [
        "ana@exämple.de", "ana@xn--exmple-cua.de", "straße@x.co", "bia@xn--nder-zra.de", "c@x.co",
    ]  # fmt: skip
    # Each signs in by the spelling that is stored, and new spellings find the earlier account.
    for email, n in (
        ("ana@EXÄMPLE.de", 0), ("Ana@xn--exmple-cua.de", 1), ("STRAßE@x.co", 2),
        ("bia@xn--nder-zra.de", 3),
    ):  # fmt: skip
        user = await db.read(users.by_email, email)
        assert user is not None
        assert user["id"] == f"{n:024x}"
    assert await db.read(users.by_email, "strasse@x.co") is None
    for email, n in (("josé@é.co", 0), ("josé@xn--9ca.co", 1), ("ZOË@straße.de", 2)):
        account = await db.read(customers.by_email, STORE, email)
        assert account is not None
        assert account.customer_id == f"{n:024x}"
    contacts = "from contacts order by id"
    assert await column(f"select sort_name {contacts}") == ["oyvind", "jose", "ana"]
    assert await column(f"select email_folded {contacts}") == [
        "o@x.co",
        "josé@xn--9ca.co",
        "a@x.co",
    ]
    assert await column(f"select phone_e164 {contacts}") == [None, None, "+5511988887777"]
    assert await column(f"select digits {contacts}") == [" 33334444 ", "", " 5511988887777 "]
    assert await column("select folded from tasks") == ["ligacao"]
    orders = "from orders order by id"
    assert await column(f"select email_folded {orders}") == ["ana@xn--exmple-cua.de", "a@x.co"]
    assert await column(f"select folded {orders} limit 1") == ["1\x1flucja\x1fana@example.de"]
    assert [bytes(one) for one in await column("select holder from coupon_uses")] == [
        holders("ana@xn--exmple-cua.de")[0]
    ]
    assert await column("select slug || sort_name from products") == ["sofa-odzsofa lodz"]
    assert await column("select value || sort_name from product_shelves") == ["łozkasofa lodz"]
    [words] = await column("select words from product_terms")
    assert f" {STORE}wlodz " in words
    await db.close()
