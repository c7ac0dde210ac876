"""The payment secret of a store when the keys of the installation change."""

from gateway.domain import sealed_columns
from gateway.domain.accounts import users
from gateway.domain.storefront.payments import payment_secrets
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.stores.stores import STORES
from gateway.records.audit import Actor
from gateway.records.record import check
from outbox.database.transaction import Database, Tx
from outbox.webhooks.secrets import KeyRing, new_key_line, parse_keys


def ring_of(db: Database, *lines: str) -> KeyRing:
    return parse_keys("\n".join(lines), db.ids, "the test's keys")


async def store_of(db: Database, number: int = 1) -> tuple[Actor, str]:
    """Create an owner with a store."""
    owner = await db.write(
        users.add, email=f"p{number}@example.com", name="Person", password_hash="-"
    )
    actor = Actor(owner, "session")
    values = {"hostname": f"shop{number}.example", "name": "Shop"}
    store = await db.write(stores.create, actor, check(STORES, values, creating=True))
    return actor, store.id


async def valid(db: Database, store_id: str, ring: KeyRing) -> list[str]:
    account = await db.read(payment_secrets.account_of, store_id, ring)
    assert account is not None
    return [*account.secrets]


async def test_every_secret_gets_the_new_key(db: Database) -> None:
    first = new_key_line(db.ids, db.clock.wall())
    old = ring_of(db, first)
    made = [await store_of(db, number) for number in (1, 2, 3)]
    for actor, store_id in made:
        for secret in ("whsec_a", "whsec_b"):
            await db.write(payment_secrets.stage, actor, store_id, secret, old)
        await db.write(payment_secrets.activate, actor, store_id)
        await db.write(payment_secrets.stage, actor, store_id, "whsec_c", old)
    second = new_key_line(db.ids, db.clock.wall() + 1_000_000)
    both = ring_of(db, first, second)
    after: str | None = ""
    counts = []
    while after is not None:
        after, done, broken = await db.write(
            sealed_columns.reseal, "payment_secrets", both, after, 2
        )
        counts.append((done, broken))
    assert counts == [(6, 0), (3, 0)]
    alone = ring_of(db, second)
    for _, store_id in made:
        assert await valid(db, store_id, alone) == ["whsec_b", "whsec_c", "whsec_a"]
    assert await db.write(sealed_columns.reseal, "payment_secrets", both, "", 10) == (None, 0, 0)
    lost = ring_of(db, new_key_line(db.ids, db.clock.wall() + 2_000_000))
    assert await db.write(sealed_columns.reseal, "payment_secrets", lost, "", 10) == (None, 0, 9)


async def test_a_replaced_secret_ends(db: Database) -> None:
    actor, store_id = await store_of(db)
    ring = ring_of(db, new_key_line(db.ids, db.clock.wall()))
    for secret in ("whsec_a", "whsec_b"):
        await db.write(payment_secrets.stage, actor, store_id, secret, ring)
    await db.write(payment_secrets.activate, actor, store_id)
    assert await valid(db, store_id, ring) == ["whsec_b", "whsec_a"]

    async def end(tx: Tx) -> None:
        await tx.run("update payment_secrets set old_secret_until = 1")

    await db.write(end)
    assert await valid(db, store_id, ring) == ["whsec_b"]
    _, standing = await db.read(payment_secrets.standing, actor, store_id, ring)
    assert standing.old_until is None
    assert await db.write(payment_secrets.expire, 10) == 1
    assert await db.write(payment_secrets.expire, 10) == 0
    assert await valid(db, store_id, ring) == ["whsec_b"]


async def test_a_secret_whose_key_is_lost_is_created_anew(db: Database) -> None:
    actor, store_id = await store_of(db)
    old = ring_of(db, new_key_line(db.ids, db.clock.wall()))
    await db.write(payment_secrets.stage, actor, store_id, "whsec_a", old)
    ring = ring_of(db, new_key_line(db.ids, db.clock.wall()))
    assert await valid(db, store_id, ring) == []
    _, standing = await db.read(payment_secrets.standing, actor, store_id, ring)
    assert not standing.exists
    # It is the current one at once: nobody can use the lost one.
    assert not await db.write(payment_secrets.stage, actor, store_id, "whsec_b", ring)
    assert await valid(db, store_id, ring) == ["whsec_b"]
