"""A running gateway for the tests of its doors."""

import logging
from collections.abc import AsyncIterator, Iterator

import argon2
import pytest

from gateway.domain.accounts import passwords
from gateway.server.telemetry import logs
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.worker import duties
from tests.support.databases import open_fresh
from tests.support.kept_pages import kept_pages_are_true
from tests.support.log_lines import Lines, only_warnings
from tests.support.rest import UNLIMITED, Person, RestApi
from tests.support.site import Site, Still, serving
from tests.support.waiting import HANG_SECONDS

CHEAP = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture
def true_cost() -> None:
    """Ask for hashes at the product's own cost, 30 ms each."""


@pytest.fixture(autouse=True)
def hashes_are_cheap(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hash passwords at a thousandth of their cost, except where a test asks for `true_cost`."""
    if "true_cost" not in request.fixturenames:
        monkeypatch.setattr(passwords, "HASHER", CHEAP)
        monkeypatch.setattr(passwords, "hash_of_nobody", lambda: CHEAP.hash(""))


@pytest.fixture(autouse=True)
def nothing_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the product ends after a moment ends only with a hang, not on a busy machine."""
    for limit in (
        "graphql.execution.SECONDS", "domain.webhooks.delivery_search.SECONDS",
        "domain.webhooks.record_names.SECONDS", "domain.cells.directory.PATIENCE_SECONDS",
    ):  # fmt: skip
        monkeypatch.setattr(f"gateway.{limit}", HANG_SECONDS)


@pytest.fixture
def duties_look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mail or a job that waits is found at once, not within five seconds."""
    monkeypatch.setattr(duties, "LOOK_SECONDS", 0.1)


@pytest.fixture
async def still(db_url: str) -> AsyncIterator[Database]:
    """An open database for limits by the second and the minute: its clock stands still."""
    db = await open_fresh(db_url, Still())
    yield db
    await db.close()


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
        await kept_pages_are_true(site)


@pytest.fixture
async def ana(api: RestApi) -> Person:
    """An owner."""
    return await api.person()


@pytest.fixture
async def bia(api: RestApi) -> Person:
    """Another user."""
    return await api.person()


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Logging set up as `serve` does, and put back after the test."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    output = Lines()
    logs.configure("info", clock=SystemClock(), node="n1", version="1.2", file=output)
    yield output
    only_warnings()
    root.handlers, root.level = handlers, level
