"""The pictures of the docs: pages of the console with real data, in light and in dark.

Only the figures of the past hours, which the charts show, and the addresses of the receivers, which
listen on loopback, are made up. Minutes pass between the writes, by the clock of the gateway.

`make pictures` writes them to docs/pictures. A usual run makes them in a temporary folder and
checks that the docs have a picture of each page.
"""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from aiohttp import web
from PIL import Image

from gateway.server.config import Config, Retry
from outbox.database.transaction import Database
from outbox.queue.state.attempt_counts import STEP
from tests.architecture.tree import ROOT
from tests.browser.conftest import sign_in, webhook, window
from tests.browser.stage import past
from tests.support.clocks import Wall
from tests.support.console import CONFIG
from tests.support.drain import Inbox, rows
from tests.support.figures import fill
from tests.support.rest import RestApi
from tests.support.site import Site
from tests.support.waiting import until

if TYPE_CHECKING:
    from playwright.async_api import Browser

KEPT = ROOT / "docs" / "pictures"
SCHEMES: tuple[Any, ...] = ("light", "dark")
PAGES = ("overview", "webhooks", "webhook", "delivery")
LARGEST = 150_000
"""Bytes of one picture."""
END = """Math.max(...[...document.querySelectorAll("main *")]
  .filter((element) => element.checkVisibility())
  .map((element) => element.getBoundingClientRect().bottom))"""
PUBLIC = r"""() => {
  for (const end of document.querySelectorAll("wbr")) {
    end.previousSibling.data = `https://${end.nextSibling.data}.example.com/`;
    end.nextSibling.data = "hooks";
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = texts.currentNode.data
    .replace(/http:\/\/127\.0\.0\.1:\d+\/(\w+)/g, "https://$1.example.com/hooks")
    .replace(/127\.0\.0\.1:\d+/g, "203.0.113.10:443");
}"""
"""Show receivers as if they were on the internet."""
WIDTH, MARGIN = 1080, 24
MINUTE = 60_000_000
CONTACTS = ("ana.souza", "bruno.lima", "carla.dias", "davi.rocha", "elisa.prado", "fabio.nunes")
PRODUCTS = ("Coffee beans 1 kg", "Filter papers", "Moka pot", "Cups, set of 6", "Hand grinder")
"""Two failed attempts for each: ten in a row open the circuit."""


@pytest.fixture
def clock() -> Wall:
    """A clock that the test moves."""
    return Wall()


@pytest.fixture
def config() -> Config:
    """With a retry after a fifth of a second, then one after an hour."""
    return msgspec.structs.replace(CONFIG, retry=Retry(schedule=(0.2, 3600.0)))


def answering() -> Any:
    """A receiver with an ERP that answers, a newsletter that is busy at first and a broken shop."""
    tried: set[str] = set()

    async def answer(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.03)
        if request.path == "/shop":
            return web.Response(status=500, text="stock table is locked")
        event = request.headers["X-Webhook-Id"]
        if request.path == "/newsletter" and event not in tried:
            tried.add(event)
            return web.Response(status=502, text="upstream is restarting")
        return web.json_response({"received": True})

    return answer


async def tried_twice(db: Database) -> bool:
    """Whether each delivery has ended, or waits after its second attempt."""
    waiting = """
    select 1 as one from events where seq is null union all
    select 1 as one from deliveries
    where state in ('in_flight', 'held') or (state = 'ready' and attempts < 2) limit 1
    """
    return not await db.read(rows, waiting)


async def furnish(site: Site, box: Inbox) -> dict[str, str]:
    """Three webhooks and their deliveries, all by the real doors; the path of each page."""
    box.answer = answering()
    owner = await site.user()
    shop, news, erp = [
        await webhook(site, owner, f"{box.url}/{name}", *events, description=called)
        for name, called, events in (
            ("shop", "Shop window", ("product.created", "product.updated")),
            ("newsletter", "Newsletter", ("contact.created", "contact.updated")),
            ("erp", "ERP", ("contact.created", "company.created", "deal.created")),
        )
    ]
    api = await RestApi(site).key_of(owner)
    writes: list[tuple[str, dict[str, Any]]] = [
        *(
            ("contacts", {"name": name.replace(".", " ").title(), "email": f"{name}@example.com"})
            for name in CONTACTS
        ),
        *(("products", {"name": name, "price": 89.9}) for name in PRODUCTS),
        ("companies", {"name": "Padaria Modelo Ltda"}),
        ("deals", {"title": "Yearly supply", "value": 12500.5, "stage": "proposal"}),
    ]
    clock = site.db.clock
    assert isinstance(clock, Wall)
    for resource, body in writes:
        clock.offset += 4 * MINUTE
        assert (await api.post(f"/api/{resource}", body)).status == 201
        await until(lambda: tried_twice(site.db), 120)
    latest = "select id from deliveries where webhook_id = $1 order by id desc limit 1"
    [delivery] = await site.db.read(rows, latest, news[-24:])
    now = site.db.clock.wall() - STEP
    for path, scale in ((erp, 3), (news, 1), (shop, 1)):
        await site.db.write(fill, path[-24:], now, past(now, path == shop, scale))
    await site.db.write(fill, owner, now, lambda at: [("event", past(now, False, 4)(at)[0][1], 0)])
    return {
        "overview": "/console", "webhooks": "/console/webhooks", "webhook": erp,
        "delivery": f"/console/deliveries/{delivery['id']}",
    }  # fmt: skip


def keep(taken: bytes, path: Path) -> None:
    """Save a picture with a palette, which makes the file a third as large.

    A colour of the palette is the most used one of those that it stands for.
    """
    with Image.open(io.BytesIO(taken)) as picture:
        full = picture.convert("RGB")
    counted = sorted(full.getcolors(full.width * full.height) or [])
    colours = [cast("tuple[int, int, int]", colour) for _, colour in counted]
    each = Image.new("RGB", (len(colours), 1))
    each.putdata(colours)
    rough = full.quantize(256, Image.Quantize.MAXCOVERAGE)
    places = each.quantize(palette=rough, dither=Image.Dither.NONE).tobytes()
    chosen = dict(zip(places, colours, strict=True))
    found = full.quantize(palette=rough, dither=Image.Dither.NONE)
    found.putpalette([shade for place in range(256) for shade in chosen.get(place, (0, 0, 0))])
    found.save(path, optimize=True)


async def test_the_docs_have_a_picture_of_each_page_in_light_and_in_dark(
    chromium: Browser, site: Site, box: Inbox, tmp_path: Path
) -> None:
    folder = KEPT if os.environ.get("PICTURES") == "1" else tmp_path
    pages = await furnish(site, box)
    assert tuple(pages) == PAGES
    for scheme in SCHEMES:
        look: Any = {"color_scheme": scheme, "viewport": {"width": WIDTH, "height": 400}}
        async with window(chromium, site.url, **look) as view:
            await sign_in(view)
            for name, path in pages.items():
                await view.open(path)
                await view.page.evaluate(PUBLIC)
                height = await view.page.evaluate(END) + MARGIN
                taken = await view.page.screenshot(
                    full_page=True, animations="disabled",
                    clip={"x": 0, "y": 0, "width": WIDTH, "height": height},
                )  # fmt: skip
                keep(taken, folder / f"{name}-{scheme}.png")
    wanted = {f"{name}-{scheme}.png" for name in PAGES for scheme in SCHEMES}
    for place in {folder, KEPT}:
        sizes = {picture.name: picture.stat().st_size for picture in place.glob("*.png")}
        assert sizes.keys() == wanted, f"{place}: refresh with `make pictures`"
        assert {name: size for name, size in sizes.items() if size > LARGEST} == {}
