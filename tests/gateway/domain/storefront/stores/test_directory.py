"""The directory forgets its entries when a commit changed a store, whatever wrote it."""

import pytest

from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.stores.stores import STORES
from gateway.records.access import Actor
from gateway.records.draft import check
from gateway.records.errors import Refusal
from gateway.server.app_keys import DIRECTORY
from tests.support.rest import Person, RestApi


async def test_a_commit_that_changes_a_store_refreshes_the_directory(
    api: RestApi, ana: Person
) -> None:
    directory = api.site.app[DIRECTORY]
    actor = Actor(ana.user_id, "storefront")
    fields = {"hostname": "shop.example", "name": "Coffee Shop"}
    store = await api.db.write(stores.create, actor, check(STORES, fields, creating=True))
    assert (await directory.find("shop.example"))[0]["name"] == "Coffee Shop"
    assert await directory.origins() == frozenset()

    changes = {"name": "Tea Shop", "allowedOrigins": ["https://tea.example"]}
    draft = check(STORES, changes, creating=False)
    await api.db.write(stores.change, actor, store.id, draft)
    assert (await directory.find("shop.example"))[0]["name"] == "Tea Shop"
    assert await directory.origins() == {"https://tea.example"}

    await api.db.write(stores.remove, actor, store.id)
    with pytest.raises(Refusal, match=r"no store with the hostname"):
        await directory.find("shop.example")
    assert await directory.origins() == frozenset()
