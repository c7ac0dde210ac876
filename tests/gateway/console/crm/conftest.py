"""Fixtures: the owners of the console tests, by the REST API."""

import pytest

from tests.support.console import Guest
from tests.support.drain import rows
from tests.support.rest import Person, RestApi


async def by_rest(guest: Guest, email: str) -> Person:
    [user] = await guest.site.db.read(rows, f"select id from users where email = '{email}'")
    return await RestApi(guest.site).key_of(user["id"])


@pytest.fixture
async def api(maria: Guest) -> Person:
    """Maria, with an API key."""
    return await by_rest(maria, "maria@example.com")
