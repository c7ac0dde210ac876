"""A password that changes between its check and what it was checked for."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.storefront.privacy import customer_erasure
from gateway.domain.storefront.sign_in import account_changes, customer_sign_in, identities
from gateway.domain.storefront.sign_in.idp_tokens import Identity
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.visitors import customer_sessions, customers
from gateway.domain.storefront.visitors.customers import Credential
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx
from tests.gateway.graphql.test_accounts import sign_up
from tests.gateway.graphql.test_late_writers import between
from tests.support.shop import Shop


async def arrived(shop: Shop) -> tuple[Shopper, Credential]:
    """Return the visitor of a customer, and the credential before a change of the password."""
    await sign_up(shop.browser())

    async def unit(tx: Tx) -> tuple[Shopper, Credential]:
        store, zone = await stores.by_hostname(tx, shop.hostname)
        known = await customers.by_email(tx, store.id, "ana@example.com")
        assert known is not None
        await customers.set_password(tx, known.customer_id, "another hash")
        return Shopper(store=store, zone=zone, customer_id=known.customer_id), known

    return await shop.db.write(unit)


async def test_a_checked_password_that_changed_does_nothing(shop: Shop) -> None:
    visitor, known = await arrived(shop)
    cases: tuple[tuple[Callable[..., Awaitable[Any]], tuple[Any, ...]], ...] = (
        (customer_sign_in.sign_in, (visitor, known, "token")),
        (account_changes.change_password, (visitor, known.password_hash, "hash", None)),
        (customer_erasure.erase_own, (visitor, known.password_hash)),
    )
    for unit, args in cases:
        with pytest.raises(Refusal) as caught:
            await shop.db.write(unit, *args)
        assert caught.value.code == "invalid_credentials"


async def test_a_session_that_a_new_password_has_ended_links_no_provider(shop: Shop) -> None:
    visitor, known = await arrived(shop)
    identity = Identity("https://idp.example", "thief", None, False, None, None, 0)

    async def linked(tx: Tx) -> None:
        """Link it while the session lasts, and again once it has ended."""
        session = await customer_sessions.start(tx, known.customer_id, visitor.store.id)
        here = replace(visitor, session_id=session.id)
        again = (await identities.link(tx, here, identity, mail=False)).visitor
        await customer_sessions.end_all(tx, known.customer_id)
        for ended in (again, here, visitor):
            with pytest.raises(Refusal) as caught:
                await identities.link(tx, ended, replace(identity, subject="other"), mail=False)
            assert caught.value.code == "unauthenticated"

    await shop.db.write(linked)


async def test_a_provider_that_a_new_password_has_removed_signs_nobody_in(shop: Shop) -> None:
    visitor, known = await arrived(shop)
    identity = Identity("https://idp.example", "thief", None, False, None, None, 0)

    async def link(tx: Tx) -> None:
        session = await customer_sessions.start(tx, known.customer_id, visitor.store.id)
        await identities.link(tx, replace(visitor, session_id=session.id), identity, mail=False)

    async def reset() -> None:
        async def unit(tx: Tx) -> None:
            await customers.lock(tx, known.customer_id)
            await customers.set_password(tx, known.customer_id, "new")
            await identities.remove_links(tx, known.customer_id, proven=True)

        await shop.db.write(unit)

    async def enter(tx: Tx) -> str:
        done = await identities.enter(tx, visitor, identity, "token", mail=False)
        return done.customer.id

    await shop.db.write(link)
    # It makes an account of its own.
    entered = await between(shop, "from customers where", enter, reset)
    assert entered != known.customer_id, entered
