"""A real Chromium in front of a gateway with its drain; what it complains of fails the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outbox import database
from outbox.clock import Clock, SystemClock
from outbox.database.transaction import Database
from outbox.ids import Ids
from tests.support.console import CONFIG
from tests.support.databases import SqliteFiles
from tests.support.drain import Inbox, inbox
from tests.support.requirements import need
from tests.support.site import Site, serving

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@dataclass
class Window:
    """A page, and everything that the browser found wrong in it."""

    page: Page
    url: str
    wrong: list[str] = field(default_factory=list)

    async def open(self, path: str) -> None:
        await self.page.goto(self.url + path)

    async def choose(self, group: str, name: str) -> None:
        """Open a group of the menu and follow a link of it."""
        menu = self.page.get_by_label("Main")
        await menu.locator("summary", has_text=group).click()
        await menu.get_by_role("link", name=name, exact=True).click()

    def watch(self) -> None:
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text} at {self.page.url}")


@pytest.fixture
def clock() -> Clock:
    return SystemClock()


@pytest.fixture
async def db(tmp_path: Path, sqlite_files: SqliteFiles, clock: Clock) -> AsyncIterator[Database]:
    """SQLite: what a browser sees does not depend on the engine."""
    url = await sqlite_files.fresh(tmp_path)
    db = await database.open(url, clock=clock, ids=Ids(), serving=True)
    yield db
    await db.close()


@pytest.fixture
async def site(db: Database) -> AsyncIterator[Site]:
    async with serving(db, CONFIG, role="all") as site:
        yield site


@pytest.fixture
async def box() -> AsyncIterator[Inbox]:
    async with inbox() as box:
        yield box


@pytest.fixture
async def chromium() -> AsyncIterator[Browser]:
    need("playwright")
    path = need("chromium")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        await browser.close()


@asynccontextmanager
async def window(browser: Browser, site: Site, **options: Any) -> AsyncIterator[Window]:
    """A new browser profile with one page; at its end nothing may have been wrong."""
    context: BrowserContext = await browser.new_context(**options)
    context.set_default_timeout(30_000)
    view = Window(await context.new_page(), site.url)
    view.watch()
    yield view
    await context.close()
    assert view.wrong == []


async def sign_in(view: Window, email: str = "maria@example.com", password: str = "") -> None:
    """Through the form, like anybody."""
    from tests.support.site import PASSWORD

    await view.open("/console/sign-in")
    await view.page.get_by_label("Email").fill(email)
    await view.page.get_by_label("Password").fill(password or PASSWORD)
    await view.page.get_by_role("button", name="Sign in").click()
    await view.page.wait_for_url("**/console")
