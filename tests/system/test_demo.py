"""`carteiro demo` as a new user runs it: a process, its output, its exit status."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from gateway.cli.demo.demo_gateway import Account, Console
from tests.architecture.tree import ROOT
from tests.support.checkouts import ADDRESS, BUYER
from tests.support.waiting import until


class Visitor(Console):
    """Somebody who explores the console of the demo."""

    async def first(self, path: str, form: str) -> str:
        """Return the first match of `form` in a page, empty for none."""
        async with self._http.get(self._url + path) as answer:
            found = re.search(form, await answer.text())
        return found[1] if found else ""

    async def until(self, path: str) -> None:
        """Wait until a list of deliveries has one."""
        # Whoever asks without a rest gets 429, also for what comes next.
        await until(partial(self.first, path, r"/console/deliveries/([0-9a-f]{24})"), rest=0.25)

    async def hook(self, name: str) -> str:
        """Return the page of the webhook of an inbox."""
        form = rf'title="[^"]*/{name}" href="/console/webhooks/([0-9a-f]{{24}})"'
        return f"/console/webhooks/{await self.first('/console/webhooks', form)}"

    async def submit(self, form: str, action: str, **fields: str) -> None:
        """Send a form of a page."""
        await self._submit(form, action, list(fields.items()))


TOTAL = re.compile(r"^  (\w+(?: \w+)*) +(\d+)(?:  \(.*\))?$", re.MULTILINE)


FINE = b"every event arrived once, with a valid signature\n"


async def demo(*words: str) -> Process:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CARTEIRO_")}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "demo", *words, cwd=ROOT, env=environment, stdout=PIPE,
        stderr=PIPE,
    )  # fmt: skip


async def delivering(folder: Path) -> tuple[Process, dict[str, str]]:
    """Start the demo; return it after its first deliveries, with what it has named."""
    process = await demo("--folder", str(folder))
    assert process.stdout is not None
    named: dict[str, str] = {}
    async for line in process.stdout:
        if at := re.match(rb"(console|shop) +(http://[^/\s]+)", line):
            named[at[1].decode()] = at[2].decode()
        if at := re.match(rb"sign in   (\S+)  password  (\S+)", line):
            named |= {"email": at[1].decode(), "password": at[2].decode()}
        if re.search(rb"[1-9]\d* deliveries", line):
            break
    return process, named


async def ended(process: Process, says: bytes = b"") -> dict[str, str]:
    """Press Ctrl-C, and return the totals of a demo that found no fault."""
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert (process.returncode, err) == (0, b""), out.decode()
    told = dict(TOTAL.findall(out.decode()))
    assert (told["lost"], told["bad signatures"]) == ("0", "0"), out.decode()
    assert out.endswith(says)
    return told


async def closed(url: str) -> None:
    """Check that nobody listens there any more."""
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", int(url.rsplit(":", 1)[1]))


async def test_a_terminal_that_closes_ends_all_of_it(tmp_path: Path) -> None:
    process, named = await delivering(tmp_path)
    # The shell sends it, and the terminal once more.
    for _ in range(2):
        process.send_signal(signal.SIGHUP)
    await process.communicate()
    await closed(named["console"])


ADD = """mutation ($input: ShoppingCartAddProductMutationInput!) {
  shoppingCartAddProduct(input: $input) { shoppingCart { totalQuantity } } }"""
SHIP = """mutation ($input: ShoppingCartSetShippingMutationInput!) {
  shoppingCartSetShipping(input: $input) { shoppingCart { total } } }"""
CHECKOUT = """mutation ($input: CheckoutMutationInput!) {
  checkout(input: $input) { order { number status } } }"""
FIRST = "query ($h: String!) { products(hostname: $h, first: 1) { nodes { id } } }"


async def test_a_purchase_in_the_shop_shows_in_the_table(tmp_path: Path) -> None:
    """The page of the shop works, its events count like all others, and Ctrl-C ends all of it."""
    process, named = await delivering(tmp_path)
    shop = named["shop"]
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(cookie_jar=jar, headers={"Origin": shop}) as http:
        async with http.get(shop) as answer:
            page = await answer.text()
        at = re.search(r'data-api="([^"]+)" data-hostname="([^"]+)"', page)
        assert at, page
        api, hostname = at.groups()

        async def send(query: str, **variables: Any) -> Any:
            body = {"query": query, "variables": variables}
            async with http.post(f"{api}/graphql", json=body) as answer:
                return (await answer.json())["data"]

        products = (await send(FIRST, h=hostname))["products"]["nodes"]
        await send(ADD, input={"hostname": hostname, "productId": products[0]["id"]})
        way = {"hostname": hostname, "cep": ADDRESS["cep"], "type": "courier"}
        await send(SHIP, input=way)
        buyer = {"hostname": hostname, **BUYER, "address": ADDRESS}
        order = (await send(CHECKOUT, input=buyer))["checkout"]["order"]
        assert order["status"] == "pending"
        async with http.post(f"{shop}/pay", json={"number": order["number"]}) as answer:
            assert answer.status == 204
    told = await ended(process, FINE)
    assert int(told["deliveries accepted"]) >= int(told["events written"]) > 0
    await closed(named["console"])


async def explored(folder: Path) -> tuple[Process, Visitor]:
    """Start the demo, and sign in to its console after the first deliveries."""
    process, named = await delivering(folder)
    console = Visitor(named["console"])
    await console.sign_in(Account(named["email"], named["password"]))
    return process, console


async def test_what_somebody_sends_again_is_no_fault(tmp_path: Path) -> None:
    """Deliveries are recovered, also while the demo ends; tests and a snapshot are sent."""
    process, console = await explored(tmp_path)
    try:
        [ledger, newsletter, warehouse] = [
            await console.hook(name) for name in ("ledger", "newsletter", "warehouse")
        ]
        await console.submit(ledger, f"{ledger}/test", event="contact.created")
        await console.submit(ledger, f"{ledger}/doctor")
        await console.submit(ledger, f"{ledger}/certify")
        await console.submit(
            f"{ledger}/snapshot", f"{ledger}/snapshot", names="contact.created", rate="1000"
        )
        since = "2026-01-01T00:00"
        for page, ends, rate in ((ledger, "delivered", "5"), (newsletter, "cancelled", "1000")):
            if page == newsletter:
                await console.submit(page, f"{page}/pause")
                await console.until(f"{page}/deliveries?state=parked")
                await console.submit(f"{page}/activate", f"{page}/activate", parked="none")
            await console.submit(
                f"{page}/recover", f"{page}/recover", kind="recover", ends=ends, since=since,
                until="", rate=rate, confirmed="twice" if ends == "delivered" else "count",
            )  # fmt: skip
        # Paused first: one of its deliveries has certainly not arrived when it is deleted.
        await console.submit(warehouse, f"{warehouse}/pause")
        await console.until(f"{warehouse}/deliveries?state=parked")
        await console.submit(f"{warehouse}/delete", f"{warehouse}/delete")
        await console.until("/console/deliveries?state=delivered")
    finally:
        await console.close()
    assert int((await ended(process))["kept back by you"]) >= 1


async def test_a_second_ctrl_c_does_not_wait_and_loses_nothing(tmp_path: Path) -> None:
    process = await demo("--folder", str(tmp_path))
    assert process.stdout is not None
    asked = False
    async for line in process.stdout:
        # Once: more lines like this one may have been written before it is noticed.
        if not asked and re.search(rb"[1-9]\d* deliveries", line):
            process.send_signal(signal.SIGINT)
            asked = True
        if line.startswith(b"waiting for the last deliveries"):
            process.send_signal(signal.SIGINT)
            break
    out, err = await process.communicate()
    assert (process.returncode, err) == (0, b""), out
    assert dict(TOTAL.findall(out.decode()))["lost"] == "0"


async def test_each_fault_once_loses_nothing(tmp_path: Path) -> None:
    process = await demo("--break", "--once", "--folder", str(tmp_path))
    out, err = await process.communicate()
    text = out.decode()
    assert (process.returncode, err) == (0, b""), text
    acts = re.findall(r"^(\w[\w ]+): fault ([\d.]+) s, recovered after [\d.]+ s$", text, re.M)
    assert [(name, round(float(fault))) for name, fault in acts] == [
        ("Kill the process", 0), ("Freeze the receivers", 8), ("Cut the database", 6),
        ("Fill the disk", 6), ("Move the clock", 6),
    ]  # fmt: skip
    told = dict(TOTAL.findall(text))
    assert (told["bad signatures"], told["lost"]) == ("0", "0")
    assert int(told["events written"]) > 0
    log = (tmp_path / "gateway.log").read_text(errors="replace")
    # The faults reached the gateway.
    assert log.count("is ready; console at") == 2
    assert "clock_jumped" in log
    assert "database is locked" in log
    assert text.endswith("every event arrived, none was lost\n")


async def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    process = await demo("--once", "--folder", str(tmp_path / "file" / "demo"))
    _, err = await process.communicate()
    assert process.returncode == 1
    assert len(err.decode().strip().splitlines()) == 1
    assert err.startswith(b"carteiro demo: ")
