"""One Chromium for all tests in front of gateways with their drains; its complaints fail a test.

The tests here share an event loop, since the browser lives in it from the first test to the last.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from gateway.server.app_keys import KEYRING
from gateway.server.config import Config
from outbox.clock import Clock, SystemClock
from tests.support.console import CONFIG, TOKEN
from tests.support.databases import SqliteFiles, open_fresh
from tests.support.drain import Inbox, add_webhook, inbox
from tests.support.requirements import need
from tests.support.site import PASSWORD, Site, serving

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 120_000
"""Milliseconds that only a hang takes."""
POLL = "00:06"
"""Longer than the time between two polls of any list."""
SESSION = pytest.mark.asyncio(loop_scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and run them in one loop."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.browser)
            own = item.get_closest_marker("timeout") is not None
            item.add_marker(pytest.mark.timeout(900), append=own)
            # The first marker decides, and pytest-asyncio has put its own there.
            item.add_marker(SESSION, append=False)


@dataclass
class Window:
    """A page, and everything that the browser found wrong in it."""

    page: Page
    url: str
    wrong: list[str] = field(default_factory=list)

    async def open(self, path: str) -> None:
        await self.page.goto(self.url + path)

    async def fill(self, fields: Mapping[str, str]) -> None:
        """Fill fields in, by their labels."""
        for label, text in fields.items():
            await self.page.get_by_label(label).fill(text)

    async def press(self, *names: str) -> None:
        """Press buttons one after the other."""
        for name in names:
            await self.page.get_by_role("button", name=name).click()

    async def poll(self) -> None:
        """Let the page ask for news now, and not in some seconds."""
        await self.page.clock.fast_forward(POLL)

    async def poll_until(self, selector: str) -> None:
        """Let the page ask for news until an element is there."""
        while not await self.page.locator(selector).count():
            async with self.page.expect_response(lambda got: "seen=" in got.url):
                await self.poll()

    def forgive(self, what: str) -> None:
        """Drop what the browser says of something that the test has provoked."""
        assert self.wrong
        self.wrong = [one for one in self.wrong if re.search(what, one) is None]

    def watch(self) -> None:
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text} at {self.page.url}")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator[Browser]:
    need("playwright")
    path = need("chromium")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        await browser.close()


@pytest.fixture
def clock() -> Clock:
    return SystemClock()


@pytest.fixture
def config() -> Config:
    return CONFIG


@asynccontextmanager
async def gateway(
    files: SqliteFiles, folder: Path, config: Config = CONFIG, clock: Clock | None = None
) -> AsyncIterator[Site]:
    """Serve a new database of SQLite: what a browser sees does not depend on the engine."""
    url = await files.fresh(folder)
    db = await open_fresh(url, clock)
    try:
        async with serving(db, config, role="all") as site:
            yield site
    finally:
        await db.close()


@pytest_asyncio.fixture(loop_scope="session")
async def site(
    tmp_path: Path, sqlite_files: SqliteFiles, config: Config, clock: Clock
) -> AsyncIterator[Site]:
    async with gateway(sqlite_files, tmp_path, config, clock) as site:
        yield site


@pytest_asyncio.fixture(loop_scope="session")
async def box() -> AsyncIterator[Inbox]:
    async with inbox() as box:
        yield box


@asynccontextmanager
async def window(browser: Browser, url: str, **options: Any) -> AsyncIterator[Window]:
    """A new browser profile with a page for a site; at its end nothing may have been wrong."""
    context: BrowserContext = await browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    view = Window(await context.new_page(), url)
    view.watch()
    try:
        yield view
    finally:
        await context.close()
    assert view.wrong == []


async def sign_in(view: Window, email: str = "maria@example.com") -> None:
    """Give the browser the cookie of a session, without drawing a page."""
    request = view.page.context.request
    form = await (await request.get(f"{view.url}/console/sign-in")).text()
    token = TOKEN.search(form)
    assert token
    fields: dict[str, Any] = {"csrf_token": token[1], "email": email, "password": PASSWORD}
    answer = await request.post(f"{view.url}/console/sign-in", form=fields, max_redirects=0)
    assert answer.status == 303, await answer.text()


async def webhook(site: Site, owner: str, url: str, *events: str, **draft: Any) -> str:
    """Create a webhook of an owner; return its path."""
    wanted = events or ("contact.created",)
    made, _ = await add_webhook(site.db, site.app[KEYRING], url, *wanted, owner=owner, **draft)
    return f"/console/webhooks/{made}"
