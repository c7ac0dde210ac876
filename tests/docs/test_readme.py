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

pytestmark = pytest.mark.slow
READY = "Carteiro 0.2.0 is ready; console at http://127.0.0.1:8080/console"
NEXT = "docs/tutorials/first-webhook.md"
CONTROLS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


async def test_from_the_first_start_to_a_verified_delivery(tmp_path: Path) -> None:
    need("curl")
    need("make")
    session = Session(tmp_path)
    try:
        found = [*blocks("README.md"), *blocks(NEXT)]
        assert "**New webhook**" in text_of(NEXT)  # the link that the step below follows
        start = next(n for n, block in enumerate(found) if block.name == "server")
        done = []
        for block in found[start:]:
            if block.kind == "terminal":
                await asyncio.to_thread(session.stay, block.name, block.text)
            elif block.kind == "prints":
                await asyncio.to_thread(session.prints, block)
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
        end = time.monotonic() + 20
        while made["id"] not in receiver.text:
            assert time.monotonic() < end, receiver.text
            await asyncio.sleep(0.05)
        assert 'verified {"event":"contact.created"' in receiver.text.splitlines()[-1]
    finally:
        await asyncio.to_thread(session.close)


@pytest.mark.proof
def test_the_link_is_an_alternative_to_the_command(tmp_path: Path) -> None:
    session = Session(tmp_path)
    try:
        session.stay("server", "make run")
        session.terminals["server"][0].until(
            session.here(f"{READY}\n\nCreate the first account…user add EMAIL --name NAME")
        )
        text = session.terminals["server"][0].text
        link = re.search(r"http://\S+first-account\?token=\S+", text)
        assert link
        page = subprocess.run(["curl", "-sf", link[0]], capture_output=True, text=True, timeout=20)
        assert 'name="password"' in page.stdout
    finally:
        session.close()


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
    end = time.monotonic() + 60
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


def disagreements(capture: str) -> list[str]:
    """Which sums of a table of the demo are wrong."""
    table = re.findall(r"^(\w+) +\w.*?((?: +\d+){6})$", capture, re.M)
    rows = {name: [int(number) for number in numbers.split()] for name, numbers in table}
    found = []
    for name, (arrived, _, refused, retries, verified, bad) in rows.items():
        if verified != arrived + refused or bad:
            found.append(f"{name}: verified {verified}, arrived {arrived}, refused {refused}")
        if retries > refused:
            found.append(f"{name}: {retries} retries of {refused} refused")
    line = re.search(r"(\d+) deliveries +(\d+) retries +(\d+) signatures verified", capture)
    assert line, capture
    for word, told, column in zip(
        ("deliveries", "retries", "verified"), line.groups(), (0, 3, 4), strict=True
    ):
        total = sum(numbers[column] for numbers in rows.values())
        if int(told) != total:
            found.append(f"{word}: {told} in the summary, {total} in the table")
    return found


def test_the_figures_of_the_demo_agree() -> None:
    [capture] = [block.text for block in blocks("README.md") if block.kind == "demo"]
    assert disagreements(capture) == []
    assert disagreements(capture.replace("161 signatures", "141 signatures"))
    assert disagreements(re.sub(r"^warehouse.*\n", "", capture, flags=re.M))
    assert disagreements(re.sub(r"\b59 ", "47 ", capture))


def test_the_readme_is_a_page_of_the_expected_length() -> None:
    assert 100 <= len(text_of("README.md").splitlines()) <= 130
