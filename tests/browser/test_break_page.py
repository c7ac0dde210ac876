"""The page of `carteiro demo --break` in a browser: each button breaks it, and nothing is lost."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.architecture.tree import ROOT
from tests.browser.test_console import CONTRAST, UNNAMED
from tests.browser.test_narrow import MISPLACED, SMALL

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.browser

PICTURES = os.environ.get("BREAK_PICTURES", "")
ACTS = ("kill", "freeze", "lock", "fill", "clock")
PATIENCE = 150_000
WIDTHS = {"wide": 1280, "phone": 400}


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[tuple[Process, str]]:
    """A running demo and the address of its page."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CARTEIRO_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "demo", "--break", "--folder", str(tmp_path)),
        cwd=ROOT, env=environment, stdout=PIPE, stderr=PIPE,
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
    button = page.locator(f"[data-act={act}]")
    await button.click()
    # The newest act is the first line.
    await page.locator("#record tr").nth(nth - 1).wait_for()
    line = page.locator("#record tr").nth(0)
    await line.get_by_text("recovered", exact=True).wait_for()
    # The other buttons wait for the end of this act.
    await page.locator(f"[data-act={act}]:enabled").wait_for()


async def until_more(page: Page, name: str, than: int) -> None:
    """Wait until a number of the ledger is greater."""
    async with asyncio.timeout(PATIENCE / 1000):
        while await number(page, name) <= than:
            await page.wait_for_event("response")


async def number(page: Page, name: str) -> int:
    return int((await page.locator(f"#{name}").inner_text()).replace(",", ""))


async def picture(page: Page, name: str) -> None:
    if PICTURES:
        await page.screenshot(path=f"{PICTURES}/{name}.png", full_page=True)


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_each_button_ends_with_nothing_lost(
    chromium: Browser, demo: tuple[Process, str]
) -> None:
    process, url = demo
    wrong: list[str] = []
    context = await chromium.new_context(
        viewport={"width": WIDTHS["wide"], "height": 900}, reduced_motion="reduce"
    )
    context.set_default_timeout(PATIENCE)
    page = await context.new_page()
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    await page.goto(url)
    await until_more(page, "delivered", 10)
    for nth, act in enumerate(ACTS, 1):
        await press(page, act, nth)
        assert await number(page, "lost") == 0, act
        await until_more(page, "written", await number(page, "written"))
    for scheme in ("light", "dark"):
        for name, width in WIDTHS.items():
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": width, "height": 900})
            await picture(page, f"{name}-{scheme}")
            for check in (CONTRAST, UNNAMED, MISPLACED, SMALL):
                assert await page.evaluate(check) == [], (name, scheme)
    await press(page, "freeze", len(ACTS) + 1)
    await context.close()
    assert wrong == []
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert (process.returncode, err) == (0, b""), out
    assert b"every event arrived, none was lost" in out
