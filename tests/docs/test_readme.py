"""README.md and the first webhook as a new user follows them: from the start to a delivery."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.docs.pages import blocks, text_of
from tests.docs.session import Session
from tests.support.requirements import need
from tests.support.waiting import HANG_SECONDS, until

READY = "Carteiro 0.2.0 is ready; console at http://127.0.0.1:8080/console"
NEXT = "docs/tutorials/first-webhook.md"
CONTROLS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@pytest.mark.proof
async def test_from_the_first_start_to_a_verified_delivery(tmp_path: Path) -> None:
    need("curl")
    need("make")
    session = Session(tmp_path)
    try:
        found = [*blocks("README.md"), *blocks(NEXT)]
        assert "**New webhook**" in text_of(NEXT)  # the link that the step below follows
        start = next(n for n, block in enumerate(found) if block.name == "server")
        done: list[str] = []
        for block in found[start:]:
            if block.kind == "terminal":
                await asyncio.to_thread(session.stay, block.name, block.text)
            elif block.kind == "prints":
                await asyncio.to_thread(session.prints, block)
                if done[-1:] == ["terminal: server"]:
                    await asyncio.to_thread(_link_leads_to_the_first_account, session)
            elif block.kind == "file":
                session.save(block)
                if block.name == "config.local.toml":
                    await asyncio.to_thread(session.restart, "server", session.here(READY))
            elif block.kind == "step":
                await session.step(block.text)
                session.last = session.terminals.get("receiver", (None, ""))[0]
            elif block.language == "sh":
                await asyncio.to_thread(session.run, block)
            else:
                assert block.language == "text", block
                continue
            done.append(block.note or "sh")
        assert done == [
            "terminal: server", "prints", "sh", "prints", "file: config.local.toml",
            "step", "file: receiver.py", "terminal: receiver", "step", "prints",
        ]  # fmt: skip
        [first] = [block for block in found if "-d '" in block.text]
        await asyncio.to_thread(session.type, first.text[first.text.index("curl") :])
        made = json.loads(session.printed)
        receiver, _ = session.terminals["receiver"]
        await until(lambda: made["id"] in receiver.text)
        assert 'verified {"event":"contact.created"' in receiver.text.splitlines()[-1]
    finally:
        await asyncio.to_thread(session.close)


def _link_leads_to_the_first_account(session: Session) -> None:
    """The link that the server prints is an alternative to the command."""
    link = re.search(r"http://\S+first-account\?token=\S+", session.terminals["server"][0].text)
    assert link
    page = subprocess.run(["curl", "-sf", link[0]], capture_output=True, text=True, timeout=20)
    assert 'name="password"' in page.stdout


def shape(line: str) -> str:
    """A line of the demo without its figures, names and widths."""
    line = re.sub(r"demo-[0-9a-f]+@|\b[0-9a-f]{18}\b|\d+", "#", line)
    return re.sub(r"\s+", " ", line).strip()


@pytest.mark.proof
def test_the_capture_of_the_demo_is_what_it_prints(tmp_path: Path) -> None:
    [capture] = [block for block in blocks("README.md") if block.kind == "demo"]
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "demo"], cwd=ROOT, stdin=theirs, stdout=theirs,
        stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    told = {shape(line) for line in capture.text.splitlines() if line.strip()}
    seen: set[str] = set()
    text = ""
    end = time.monotonic() + HANG_SECONDS
    try:
        while not told <= seen:
            assert time.monotonic() < end, sorted(told - seen)
            text += os.read(ours, 65536).decode(errors="replace").replace("\r", "")
            *lines, text = text.split("\n")
            seen |= {shape(CONTROLS.sub("", line)) for line in lines}
        assert {line for line in seen if line.endswith("# # # # # #")} <= told, "a row is missing"
        process.send_signal(signal.SIGINT)
        while True:
            try:
                os.read(ours, 65536)
            except OSError:
                break
        assert process.wait(30) == 0
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait(10)


def test_the_figures_of_the_demo_agree() -> None:
    [capture] = [block.text for block in blocks("README.md") if block.kind == "demo"]
    table = re.findall(r"^\w+ +\w.*?((?: +\d+){6})$", capture, re.M)
    rows = [[int(number) for number in numbers.split()] for numbers in table]
    for arrived, _, refused, retries, verified, bad in rows:
        assert (verified, bad) == (arrived + refused, 0)
        assert retries <= refused
    sums = r"(\d+) deliveries +(\d+) retries +(\d+) signatures verified"
    told = [int(number) for line in re.findall(sums, capture) for number in line]
    assert told == [sum(row[column] for row in rows) for column in (0, 3, 4)]


def test_the_readme_is_a_page_of_the_expected_length() -> None:
    assert 100 <= len(text_of("README.md").splitlines()) <= 130
