"""What an owner or a stranger may ask for at other doors; each returns what it got."""

from __future__ import annotations

import asyncio
import io
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import aiohttp
from PIL import Image

from tests.system.attacks.attack import Target

SECONDS = 12.0
AT_ONCE = 50
LIST = {
    "jsonrpc": "2.0", "id": 1, "method": "tools/call",
    "params": {"name": "list", "arguments": {"type": "contacts", "limit": 100}},
}  # fmt: skip
MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
QUOTE = {
    "title": "Coffee", "validUntil": "2999-12-20",
    "items": [{"description": f"Coffee {n}", "quantity": 2, "unitPrice": 9.9} for n in range(200)],
}  # fmt: skip
BITMAP = 4_000
Ask = Callable[[aiohttp.ClientSession], Awaitable[aiohttp.ClientResponse]]


async def repeated(http: aiohttp.ClientSession, ask: Ask, at_once: int = AT_ONCE) -> Counter[int]:
    """Ask again and again, many at once, after refusals too."""
    got, end = Counter[int](), time.monotonic() + SECONDS

    async def several() -> None:
        while time.monotonic() < end:
            status = 0
            # A body that is refused early meets a closed connection.
            with suppress(aiohttp.ClientError):
                answer = await ask(http)
                await answer.read()
                status = answer.status
            got[status] += 1

    await asyncio.gather(*(several() for _ in range(at_once)))
    return got


async def of_the_console(path: str, target: Target) -> Counter[int]:
    """Ask for a page of the console on the connections of one session."""
    async with target.site.console(0) as forms:
        cookies = {one.key: one.value for one in forms.http.cookie_jar}
    async with target.client(X_Forwarded_For="203.0.113.9") as http:
        http.cookie_jar.update_cookies(cookies)
        return await repeated(http, lambda http: http.get(path, allow_redirects=False))


async def mcp_messages(target: Target) -> Counter[int]:
    """List records by MCP."""
    async with target.client(0) as http:
        return await repeated(http, lambda http: http.post("/mcp", json=LIST, headers=MCP))


async def files_of_a_link(target: Target) -> Counter[int]:
    """Ask for the PDF file of a long quote, with its link and without an account."""
    async with target.client(0) as http:
        async with http.post("/api/quotes", json=QUOTE) as answer:
            assert answer.status == 201, await answer.text()
            quote = await answer.json()
        async with http.post(f"/api/quotes/{quote['id']}/link") as answer:
            link = (await answer.json())["url"].partition("/documents")[2]
    async with target.client(X_Forwarded_For="203.0.113.9") as http:
        return await repeated(http, lambda http: http.get(f"/documents/pdf{link}"))


async def images(target: Target) -> Counter[int]:
    """Send images that are long to encode."""
    file = io.BytesIO()
    Image.effect_noise((BITMAP, BITMAP), 90).save(file, "JPEG", quality=90)
    async with target.client(0) as http:
        async with http.post("/api/products", json={"name": "Coffee", "price": 9.9}) as answer:
            assert answer.status == 201, await answer.text()
            path = f"/api/products/{(await answer.json())['id']}/images"
        return await repeated(
            http, lambda http: http.post(path, data=io.BytesIO(file.getvalue())), 4
        )


async def forgotten_passwords(target: Target) -> Counter[int]:
    """Ask for mails to accounts, and to addresses without one."""
    async with target.client(X_Forwarded_For="203.0.113.9") as http:
        async with http.get("/console/forgotten-password") as answer:
            # The jar itself keeps no cookies of addresses.
            http.cookie_jar.update_cookies({n: one.value for n, one in answer.cookies.items()})
            token = (await answer.text()).partition('name="csrf_token" value="')[2].split('"')[0]
        form = {"csrf_token": token, "email": "owner1@example.com"}
        headers = {"Origin": target.address}
        return await repeated(
            http,
            lambda http: http.post(
                "/console/forgotten-password", data=form, headers=headers, allow_redirects=False
            ),
        )
