"""A running gateway for the tests of its doors."""

from collections.abc import AsyncIterator

import pytest

from outbox.database.transaction import Database
from tests.support.rest import UNLIMITED, Person, RestApi
from tests.support.site import Site, serving


@pytest.fixture
async def site(db: Database) -> AsyncIterator[Site]:
    """The API and the console with the default configuration, on each engine."""
    async with serving(db) as site:
        yield site


@pytest.fixture
async def api(db: Database) -> AsyncIterator[RestApi]:
    """The REST door without rate limits, on each engine."""
    async with serving(db, UNLIMITED) as site:
        yield RestApi(site)


@pytest.fixture
async def ana(api: RestApi) -> Person:
    """An owner."""
    return await api.person()


@pytest.fixture
async def bia(api: RestApi) -> Person:
    """Another user."""
    return await api.person()
