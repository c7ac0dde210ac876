"""Who may take a hostname: those of the installation are reserved, those given up rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from gateway.domain.storefront.stores import hostname_claims
from gateway.server import config
from gateway.server.storefront import reserve_hostnames
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY
from outbox.ids import Ids
from tests.support.rest import UNLIMITED, Person, Reply, RestApi
from tests.support.site import serving


class Later(SystemClock):
    """A clock that the test puts forward."""

    days: float = 0

    def wall(self) -> int:
        return super().wall() + round(self.days * DAY)


@pytest.fixture
async def api(db_url: str) -> AsyncIterator[RestApi]:
    db = await database.open(db_url, clock=Later(), ids=Ids(), serving=True)
    async with serving(db, UNLIMITED) as site:
        yield RestApi(site)
    await db.close()


async def take(who: Person, hostname: str, *aliases: str) -> Reply:
    body = {"name": "S", "hostname": hostname, "aliases": aliases}
    return await who.post("/api/stores", body)


def pass_days(db: Database, days: float) -> None:
    assert isinstance(db.clock, Later)
    db.clock.days += days


@pytest.mark.parametrize("way", ["delete", "rename", "alias"])
async def test_a_hostname_that_is_given_up_rests_for_all_but_its_last_owner(
    api: RestApi, ana: Person, bia: Person, way: str
) -> None:
    made = await take(ana, "a.example.com", "b.example.com")
    path = f"/api/stores/{made.body['id']}"
    gone = {"delete": "a.example.com", "rename": "a.example.com", "alias": "b.example.com"}[way]
    if way == "delete":
        await ana.call("DELETE", path)
    else:
        change: dict[str, object] = {"aliases": []}
        if way == "rename":
            change = {"hostname": "c.example.com"}
        assert (await ana.put(path, change)).status == 200
    for form in (gone, gone.upper(), f"{gone}.", f"{gone}:8443"):
        refused = await take(bia, form)
        assert (refused.status, refused.faults) == (409, {"hostname": "resting"}), form
    refused = await take(bia, "d.example.com", gone)
    assert refused.faults == {"aliases[0]": "resting"}
    assert "2" in refused.body["error"]
    # Its last owner takes it at once, and it rests again.
    again = await take(ana, gone)
    assert again.status == 201
    pass_days(api.db, 29)
    await ana.call("DELETE", f"/api/stores/{again.body['id']}")
    pass_days(api.db, 29)
    assert (await take(bia, gone)).status == 409
    pass_days(api.db, 1)
    assert (await take(bia, gone)).status == 201
    assert await api.db.write(hostname_claims.EXPIRY.purge, 100) == 1 + (way == "delete")


async def test_a_claim_that_waits_for_the_end_of_another_finds_it_resting(
    api: RestApi, ana: Person, bia: Person
) -> None:
    made = await take(ana, "a.example.com")
    gone = asyncio.ensure_future(ana.call("DELETE", f"/api/stores/{made.body['id']}"))
    taken = await asyncio.gather(*(take(bia, "a.example.com") for _ in range(5)))
    await gone
    assert {reply.status for reply in taken} == {409}
    assert (await take(bia, "a.example.com")).faults == {"hostname": "resting"}


async def test_without_the_rest_another_owner_takes_it_at_once(
    api: RestApi, ana: Person, bia: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hostname_claims, "REST", 0)
    made = await take(ana, "a.example.com")
    await ana.call("DELETE", f"/api/stores/{made.body['id']}")
    assert (await take(bia, "a.example.com")).status == 201


async def test_the_hostnames_of_the_installation_are_reserved(api: RestApi, ana: Person) -> None:
    settings = config.load(
        None,
        {
            "CARTEIRO_SERVER__PUBLIC_URL": "https://CRM.Example.com:8443",
        },
    )
    await reserve_hostnames(settings, api.db)
    for form in ("crm.example.com", "Crm.Example.Com.", "crm.example.com:443"):
        assert (await take(ana, form)).faults == {"hostname": "reserved"}
    refused = await take(ana, "shop.example.com", "crm.example.com")
    assert refused.faults == {"aliases[0]": "reserved"}
    assert (await take(ana, "shop.crm.example.com")).status == 201
    # Another address of the installation replaces it; a store that has it before keeps it.
    other = config.load(None, {"CARTEIRO_SERVER__PUBLIC_URL": "https://shop.crm.example.com"})
    await reserve_hostnames(other, api.db)
    made = await take(ana, "crm.example.com")
    assert made.status == 201
    await reserve_hostnames(settings, api.db)
    path = f"/api/stores/{made.body['id']}"
    assert (await ana.put(path, {"name": "T", "aliases": ["x.example.com"]})).status == 200
    refused = await ana.put(path, {"hostname": "y.example.com", "aliases": []})
    assert refused.status == 200
    assert (await ana.put(path, {"hostname": "crm.example.com"})).faults == {"hostname": "reserved"}


async def test_a_start_writes_the_reserved_names_only_when_they_differ(api: RestApi) -> None:
    settings = config.load(None, {"CARTEIRO_SERVER__PUBLIC_URL": "https://crm.example.com"})
    await reserve_hostnames(settings, api.db)

    async def forbid(tx: Tx, names: object) -> None:
        raise AssertionError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostname_claims, "reserve", forbid)
        await reserve_hostnames(settings, api.db)
    assert await api.db.read(hostname_claims.reserved) == {"crm.example.com"}
