"""The page of `carteiro demo --break` in a browser: each button breaks it, and nothing is lost."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests.architecture.tree import ROOT
from tests.browser.conftest import window
from tests.browser.faults import faults

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

ACTS = ("kill", "freeze", "lock", "fill", "clock")
WIDE = 1280


@pytest_asyncio.fixture(loop_scope="session")
async def demo(tmp_path: Path) -> AsyncIterator[tuple[Process, str]]:
    """A running demo and the address of its page."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "demo", "--break", "--folder", str(tmp_path)),
        cwd=ROOT, stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    async for line in process.stdout:
        found = re.match(rb"break it  (http://\S+)$", line)
        if found:
            break
    else:
        assert process.stderr is not None
        raise AssertionError((await process.stderr.read()).decode())
    yield process, found[1].decode()
    if process.returncode is None:
        # The demo ends its gateway, which has a session of its own.
        process.send_signal(signal.SIGINT)
        try:
            async with asyncio.timeout(30):
                await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()


async def press(page: Page, act: str, nth: int) -> None:
    """Press a button, and wait until the ledger says that the demo has recovered from it."""
    await page.locator(f"[data-act={act}]").click()
    # The newest act is the first line.
    await page.locator("#record tr").nth(nth - 1).wait_for()
    line = page.locator("#record tr").nth(0)
    await line.get_by_text("recovered", exact=True).wait_for()
    # The other buttons wait for the end of this act.
    await page.locator(f"[data-act={act}]:enabled").wait_for()


async def until_more(page: Page, name: str, than: int) -> None:
    """Wait until a number of the ledger is greater."""
    while await number(page, name) <= than:
        await page.wait_for_event("response")


async def number(page: Page, name: str) -> int:
    return int((await page.locator(f"#{name}").inner_text()).replace(",", ""))


@pytest.mark.proof
@pytest.mark.timeout(600)
async def test_each_button_ends_with_nothing_lost(
    chromium: Browser, demo: tuple[Process, str]
) -> None:
    process, url = demo
    size: Any = {"width": WIDE, "height": 900}
    async with window(chromium, url, viewport=size, reduced_motion="reduce") as view:
        page = view.page
        await page.goto(url)
        await until_more(page, "delivered", 10)
        for nth, act in enumerate(ACTS, 1):
            await press(page, act, nth)
            assert await number(page, "lost") == 0, act
            await until_more(page, "written", await number(page, "written"))
        for scheme in ("light", "dark"):
            for width in (WIDE, 400):
                await page.emulate_media(color_scheme=scheme)
                await page.set_viewport_size({"width": width, "height": 900})
                assert await faults(page) == [], (width, scheme)
        await press(page, "freeze", len(ACTS) + 1)
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert (process.returncode, err) == (0, b""), out
    assert b"every event arrived, none was lost" in out
