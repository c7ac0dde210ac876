"""A password that changes between its check and what it was checked for."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gateway.domain.storefront.privacy import customer_erasure
from gateway.domain.storefront.sign_in import account_changes, customer_sign_in
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.visitors import customers
from gateway.domain.storefront.visitors.customers import Credential
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.records.errors import Refusal
from outbox.database.transaction import Tx
from tests.gateway.graphql.test_accounts import sign_up
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
