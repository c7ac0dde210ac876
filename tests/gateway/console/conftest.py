"""Fixtures: a gateway with its console, and visitors with and without a session."""

from collections.abc import AsyncIterator

import pytest

from outbox.database.transaction import Database
from tests.support.console import CONFIG, Guest, guest
from tests.support.drain import Inbox, inbox
from tests.support.site import Site, serving


@pytest.fixture
async def console(db: Database) -> AsyncIterator[Site]:
    """The gateway without its drain, on each engine."""
    async with serving(db, CONFIG) as site:
        yield site


@pytest.fixture
async def box() -> AsyncIterator[Inbox]:
    """A receiver."""
    async with inbox() as box:
        yield box


@pytest.fixture
async def nobody(console: Site) -> AsyncIterator[Guest]:
    """A browser that is not signed in."""
    async with guest(console) as somebody:
        yield somebody


@pytest.fixture
async def maria(console: Site) -> AsyncIterator[Guest]:
    """A signed-in user."""
    await console.user("maria@example.com")
    async with guest(console) as somebody:
        await somebody.sign_in("maria@example.com")
        yield somebody


@pytest.fixture
async def rui(console: Site) -> AsyncIterator[Guest]:
    """Another signed-in user."""
    await console.user("rui@example.com")
    async with guest(console) as somebody:
        await somebody.sign_in("rui@example.com")
        yield somebody
