"""How many of our files a request or a delivery enters, and its calls: they may only fall.

A reader who follows a request opens these files. Code that only runs at the start or once per
process does not count, nor do duties or what other work does meanwhile: the least of some rounds
counts.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from outbox import database
from outbox.database.transaction import Database
from outbox.ids import Ids
from tests.architecture.tree import PACKAGES, ROOT
from tests.support.carts import sell
from tests.support.checkouts import ordered, put
from tests.support.clocks import Stopped
from tests.support.console import CONFIG, guest
from tests.support.counted import in_background
from tests.support.drain import drain, inbox, make, ring
from tests.support.rest import RestApi
from tests.support.shop import open_shop
from tests.support.site import serving

ROUNDS = 5
MARGIN = 1.1
"""How much the calls may be above their figure: how often the loop turns in between varies."""
# The files entered and the Python calls of each trip.
MOST = {
    "create": (30, 186), "list": (24, 84), "checkout": (50, 812), "console save": (33, 296),
    "delivery": (44, 501),
}  # fmt: skip

Act = Callable[[], Awaitable[object]]
Trip = tuple[set[str], int]
"""The files entered, and the number of calls."""


class Trips:
    """Notes the files of the product whose code runs, in threads that start while it is open."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.on = False
        self._names: dict[str, str | None] = {}

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        if not self.on or event != "call" or in_background.get():
            return
        name = frame.f_code.co_filename
        if name not in self._names:
            path = name.removeprefix(f"{ROOT}/")
            self._names[name] = path if path.startswith(PACKAGES) else None
        if (path_of := self._names[name]) is not None:
            self.calls[path_of] += 1

    async def of(self, act: Act, before: Act | None = None) -> Trip:
        """Return the files and the number of calls that `act` needs in each round."""
        files: list[set[str]] = []
        calls: list[int] = []
        for number in range(ROUNDS):
            if before is not None:
                await before()
            self.calls = Counter()
            self.on = True
            await act()
            self.on = False
            if number:
                # The first round fills what later ones find.
                files.append(set(self.calls))
                calls.append(self.calls.total())
        return set.intersection(*files), min(calls)


@contextmanager
def noting() -> Iterator[Trips]:
    trips = Trips()
    threading.setprofile(trips.note)
    sys.setprofile(trips.note)
    try:
        yield trips
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_a_trip_enters_no_more_files_than_it_did(db_url: str) -> None:
    with noting() as trips:
        # A busy machine must leave no read to a thread.
        db = await database.open(db_url, clock=Stopped(), ids=Ids(), serving=True)
        try:
            found = await measured(db, trips)
        finally:
            await db.close()
    longer = {
        name: sorted(files) if len(files) > MOST[name][0] else calls
        for name, (files, calls) in found.items()
        if len(files) > MOST[name][0] or calls > MOST[name][1] * MARGIN
    }
    shown = {name: (len(files), calls) for name, (files, calls) in found.items()}
    assert longer == {}, shown


async def measured(db: Database, trips: Trips) -> dict[str, Trip]:
    found = {}
    async with serving(db, CONFIG) as site:
        api = RestApi(site)
        shop = await open_shop(api)
        browser = shop.browser()
        product = await sell(shop)
        person = {"name": "Ana", "email": "ana@example.com", "tags": ["a"]}
        found["create"] = await trips.of(lambda: shop.owner.post("/api/contacts", person))
        found["list"] = await trips.of(lambda: shop.owner.get("/api/contacts?limit=5"))
        found["checkout"] = await trips.of(
            lambda: ordered(browser), before=lambda: put(browser, product)
        )
        await site.user()
        async with guest(site) as maria:
            await maria.sign_in()
            token = (await maria.get("/console/contacts/new")).csrf
            fields = [("csrf_token", token), ("name", "Ana"), ("email", "ana@example.com")]
            found["console save"] = await trips.of(
                lambda: maria.post("/console/contacts", fields, follow=False)
            )
        await shop.close()
    async with inbox() as box, drain(db, ring()) as running:
        await running.webhook(box.url)
        ended = itertools.count(1)

        async def deliver() -> None:
            await db.write(make, "some")
            await running.watch.until("delivery_finished", next(ended))

        found["delivery"] = await trips.of(deliver)
    return found
