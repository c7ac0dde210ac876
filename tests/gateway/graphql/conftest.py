"""Stores for the tests of the storefront, with a mailbox and an identity provider."""

from collections.abc import AsyncIterator

import pytest

from gateway.server.config import Config, Egress
from outbox.database.transaction import Database
from tests.support.issuer import CLIENT, Issuer, issuing
from tests.support.mailbox import Mailbox, mailbox, settings
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import Shop, open_shop, opened

LIMITS = UNLIMITED.limits
LOOPBACK = Egress(allow_http=True, allow=("127.0.0.0/8",))


@pytest.fixture
async def shop(api: RestApi) -> AsyncIterator[Shop]:
    """A store without limits, on each engine."""
    shop = await open_shop(api)
    try:
        yield shop
    finally:
        await shop.close()


@pytest.fixture
async def box() -> AsyncIterator[Mailbox]:
    async with mailbox() as box:
        yield box


@pytest.fixture
async def posting(db: Database, box: Mailbox) -> AsyncIterator[Shop]:
    """A store whose server sends mails to the box."""
    async with opened(db, Config(limits=LIMITS, mail=settings(box))) as shop:
        yield shop


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as issuer:
        yield issuer


def trusting(issuer: Issuer) -> list[dict[str, object]]:
    """Return the identity providers of a store that trusts the issuer for example.com."""
    return [{"issuer": issuer.url, "clientIds": [CLIENT], "trustedDomains": ["example.com"]}]


@pytest.fixture
async def idp_shop(still: Database, issuer: Issuer) -> AsyncIterator[Shop]:
    """A store without mail that trusts the issuer."""
    async with opened(still, Config(limits=LIMITS, egress=LOOPBACK), idps=trusting(issuer)) as shop:
        yield shop


@pytest.fixture
async def idp_posting(db: Database, issuer: Issuer, box: Mailbox) -> AsyncIterator[Shop]:
    """The same store, on a server that sends mails."""
    config = Config(limits=LIMITS, egress=LOOPBACK, mail=settings(box))
    async with opened(db, config, idps=trusting(issuer)) as shop:
        yield shop
