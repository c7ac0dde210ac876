"""Writes of an owner who moves are refused at each door; those of others are not."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from outbox.database.transaction import Database
from tests.support.console import CONFIG, guest
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import Browser, open_shop
from tests.support.site import Site, serving


@asynccontextmanager
async def without(db: Database, owner_id: str) -> AsyncIterator[Site]:
    """Serve a database that an owner leaves."""
    db.closed_owners = {owner_id: None}
    async with serving(db, UNLIMITED) as site:
        yield site


async def test_the_storefront(db: Database) -> None:
    async with serving(db, UNLIMITED) as site:
        shop = await open_shop(RestApi(site))
    async with without(db, shop.owner.user_id) as site:
        browser = Browser(site.url, shop.hostname)
        answer = await browser.do("lead", "success", email="lia@example.com", name="Lia")
        await browser.close()
    assert answer.code == "MOVING"
    assert answer.error["extensions"]["retryAfter"] == 1


async def test_the_console(db: Database) -> None:
    async with serving(db, CONFIG) as site:
        user_id = await site.user("maria@example.com")
        db.closed_owners = {user_id: None}
        async with serving(db, CONFIG) as site, guest(site) as maria:
            await maria.sign_in("maria@example.com")
            page = await maria.submit("/console/contacts", at="/console/contacts/new", name="Lia")
            assert page.status == 503
            assert "Your data is moving" in page.html
