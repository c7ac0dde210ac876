"""A store for the tests of the storefront."""

from collections.abc import AsyncIterator

import pytest

from tests.support.rest import RestApi
from tests.support.shop import Shop, open_shop


@pytest.fixture
async def shop(api: RestApi) -> AsyncIterator[Shop]:
    """A store without limits, on each engine."""
    shop = await open_shop(api)
    try:
        yield shop
    finally:
        await shop.close()
