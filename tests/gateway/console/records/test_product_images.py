"""Images on the page of a product: uploaded, ordered, removed, and refused in words."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from gateway.domain.sales import products
from gateway.domain.sales.products import PRODUCTS
from gateway.records import actions
from gateway.records.record import check
from gateway.server.config import Images
from outbox.database.transaction import Database
from tests.gateway.console.records.test_stores import owner_of
from tests.gateway.server.images.test_product_images import drawn, file_of, heic
from tests.support.console import CONFIG, Guest, guest
from tests.support.site import serving


@pytest.fixture
async def maria(still: Database, tmp_path: Path) -> AsyncIterator[Guest]:
    config = msgspec.structs.replace(CONFIG, images=Images(folder=str(tmp_path / "images")))
    async with serving(still, config) as site:
        await site.user()
        async with guest(site) as somebody:
            await somebody.sign_in()
            yield somebody


async def images_of(guest: Guest, product_id: str) -> list[dict[str, str]]:
    actor = await owner_of(guest)
    record = await guest.site.db.read(actions.read, actor, PRODUCTS, product_id)
    shown: list[dict[str, str]] = record.shown("images")
    return shown


async def test_images_on_the_page_of_a_product(maria: Guest) -> None:
    draft = check(PRODUCTS, {"name": "Café", "price": 10}, from_json=True, creating=True)
    record = await maria.site.db.write(products.create, await owner_of(maria), draft)
    path = f"/console/products/{record.id}"
    for place, alt in enumerate(("Frente", "Verso")):
        token = (await maria.get(path)).csrf
        sent = await maria.upload(
            f"{path}/images", file_of(drawn((60 + place, 40)), "PNG"), token=token,
            fields=[("alt", alt)],
        )  # fmt: skip
        assert "Image added." in sent.html
    front, back = await images_of(maria, record.id)
    assert (front["alt"], back["alt"]) == ("Frente", "Verso")
    shown = re.findall('<img src="(/images/[^"]+)"', (await maria.get(path)).html)
    assert shown == [one["url"][one["url"].index("/images/") :] for one in (front, back)]
    await maria.submit(f"{path}/images/place", at=path, url=back["url"], act="first")
    assert await images_of(maria, record.id) == [back, front]
    await maria.submit(f"{path}/images/place", at=path, url=back["url"], act="remove")
    assert await images_of(maria, record.id) == [front]
    token = (await maria.get(path)).csrf
    refused = await maria.upload(f"{path}/images", heic(), token=token, fields=[("alt", "Kept")])
    assert refused.status == 400
    assert 'id="file-fault"' in refused.html
    assert "HEIC" in refused.html
    assert 'value="Kept"' in refused.html
    assert (await maria.upload(f"{path}/images", b"x", token="wrong")).status == 403
