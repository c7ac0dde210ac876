"""Hostnames that are proven by DNS, with name servers on loopback."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from dnslib import QTYPE, RCODE, RR, TXT, DNSRecord
from msgspec.structs import replace

from gateway.domain.storefront.stores import host_proofs
from gateway.server import config
from gateway.server.storefront import lookups_of
from gateway.server.upkeep import host_lookups
from outbox import database
from outbox.database.transaction import Database, Tx
from outbox.durations import DAY, MINUTE
from outbox.ids import Ids
from tests.gateway.domain.storefront.stores.test_hostnames import Later, pass_days, take
from tests.support.console import guest
from tests.support.rest import UNLIMITED, Person, RestApi
from tests.support.site import serving

HOST, RECORD = "shop.example.com", "_carteiro.shop.example.com"


@dataclass
class Names(asyncio.DatagramProtocol):
    """A name server with TXT records; `rcode` is its answer for all, None stays silent."""

    records: dict[str, list[str]] = field(default_factory=dict)
    rcode: str | None = ""
    asked: list[str] = field(default_factory=list)
    port: int = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        question = DNSRecord.parse(data)
        name = str(question.q.qname).rstrip(".").lower()
        self.asked.append(name)
        if self.rcode is None:
            return
        answer = question.reply()
        if self.rcode:
            answer.header.rcode = getattr(RCODE, self.rcode)
        elif name not in self.records:
            answer.header.rcode = RCODE.NXDOMAIN
        for text in self.records.get(name, []) if not self.rcode else []:
            parts = [text[n : n + 255] for n in range(0, len(text), 255)]
            answer.add_answer(RR(str(question.q.qname), QTYPE.TXT, rdata=TXT(parts), ttl=60))
        self._transport.sendto(answer.pack(), address)  # type: ignore[attr-defined] # UDP


@asynccontextmanager
async def name_server() -> AsyncIterator[Names]:
    loop = asyncio.get_running_loop()
    transport, names = await loop.create_datagram_endpoint(
        Names, local_addr=("127.0.0.1", 0), family=socket.AF_INET
    )
    yield names
    transport.close()


@pytest.fixture
async def names() -> AsyncIterator[Names]:
    async with name_server() as server:
        yield server


@pytest.fixture
async def api(db_url: str) -> AsyncIterator[RestApi]:
    db = await database.open(db_url, clock=Later(), ids=Ids(), serving=True)
    settings = replace(UNLIMITED, storefront=config.Storefront(verify_hostnames=True))
    async with serving(db, settings) as site:
        yield RestApi(site)
    await db.close()


async def due_after(tx: Tx) -> int | None:
    row = await tx.one("select due_at - asked_at from store_hosts")
    return None if row is None else row[0]


def look(db: Database, names: Names) -> host_lookups.HostLookups:
    servers = {"CARTEIRO_STOREFRONT__NAME_SERVERS": f"127.0.0.1:{names.port}"}
    settings = config.load(None, servers | {"CARTEIRO_STOREFRONT__VERIFY_HOSTNAMES": "true"})
    found = lookups_of(settings, db)
    assert found is not None
    return found


async def served(api: RestApi, hostname: str = HOST) -> bool:
    query = f'{{ products(hostname: "{hostname}") {{ totalCount }} }}'
    reply = await api.site.http.post(f"{api.site.url}/graphql", json={"query": query})
    body = await reply.json()
    codes = [one["extensions"]["code"] for one in body.get("errors", [])]
    assert codes in ([], ["STORE_NOT_FOUND"])
    return not codes


async def states(who: Person, store: str) -> dict[str, str]:
    reply = await who.get(f"/api/stores/{store}/hostnames")
    assert reply.status == 200, reply.text
    return {one["hostname"]: one["state"] for one in reply.body["data"]}


async def test_a_store_answers_once_its_record_names_its_account(
    api: RestApi, ana: Person, bia: Person, names: Names
) -> None:
    store = (await take(ana, HOST, "www.example.com")).body["id"]
    assert await states(ana, store) == {HOST: "pending", "www.example.com": "pending"}
    assert not await served(api)
    lookups = look(api.db, names)
    await lookups.run_once()
    assert await states(ana, store) == {HOST: "missing", "www.example.com": "missing"}
    [shown, _] = (await ana.get(f"/api/stores/{store}/hostnames")).body["data"]
    assert shown["recordName"] == RECORD
    # Another account's record, in other letters and with more beside it, proves nothing.
    other = host_proofs.value_of(bia.user_id)
    names.records[RECORD] = [other, "v=spf1 -all", shown["recordValue"].upper(), "x" * 300]
    pass_days(api.db, 1)
    await lookups.run_once()
    assert (await states(ana, store))[HOST] == "missing"
    names.records[RECORD].append(shown["recordValue"])
    pass_days(api.db, 1)
    await lookups.run_once()
    assert await states(ana, store) == {HOST: "verified", "www.example.com": "missing"}
    assert await served(api)
    assert not await served(api, "www.example.com")
    assert (await bia.get(f"/api/stores/{store}/hostnames")).status in (403, 404)
    # Another store of the account has the same record; a change keeps what is proven.
    assert (await ana.put(f"/api/stores/{store}", {"aliases": []})).status == 200
    assert await states(ana, store) == {HOST: "verified"}
    await ana.call("DELETE", f"/api/stores/{store}")
    second = (await take(ana, HOST)).body["id"]
    assert await states(ana, second) == {HOST: "pending"}
    await lookups.run_once()
    assert await states(ana, second) == {HOST: "verified"}


async def test_a_record_that_goes_ends_the_proof_after_a_week_but_an_error_never(
    api: RestApi, ana: Person, names: Names
) -> None:
    store = (await take(ana, HOST)).body["id"]
    names.records[RECORD] = [host_proofs.value_of(ana.user_id)]
    lookups = look(api.db, names)
    await lookups.run_once()
    for rcode in ("SERVFAIL", "REFUSED"):
        names.rcode = rcode
        for _ in range(10):
            pass_days(api.db, 2)
            await lookups.run_once()
        assert await states(ana, store) == {HOST: "failing"}
        assert await served(api)
    names.rcode = ""
    await lookups.run_once()
    pass_days(api.db, 2)
    await lookups.run_once()
    assert await states(ana, store) == {HOST: "verified"}
    del names.records[RECORD]
    pass_days(api.db, 2)
    await lookups.run_once()
    assert await states(ana, store) == {HOST: "failing"}
    pass_days(api.db, 6)
    await lookups.run_once()
    assert await states(ana, store) == {HOST: "missing"}
    assert not await served(api)


async def test_a_hostname_without_its_record_is_looked_for_ever_more_rarely_and_then_no_more(
    api: RestApi, ana: Person, bia: Person, names: Names
) -> None:
    store = (await take(ana, HOST)).body["id"]
    lookups, looks = look(api.db, names), [0]
    await lookups.run_once()
    while (wait := await api.db.read(due_after)) is not None:
        # The clock goes on meanwhile.
        pass_days(api.db, (wait - MINUTE) / DAY)
        await lookups.run_once()
        assert len(names.asked) == len(looks)
        pass_days(api.db, MINUTE / DAY)
        await lookups.run_once()
        looks.append(wait)
    assert len(names.asked) == len(looks) < 80
    assert (looks[1], looks == sorted(looks), looks[-1] <= DAY) == (5 * MINUTE, True, True)
    assert 14 * DAY <= sum(looks) <= 15 * DAY
    assert await states(ana, store) == {HOST: "expired"}
    pass_days(api.db, 30)
    await lookups.run_once()
    assert len(names.asked) == len(looks)
    # "Check again" begins anew; it looks no sooner for being asked often.
    path = f"/api/stores/{store}/hostnames/check"
    assert (await bia.post(path)).status in (403, 404)
    for _ in range(3):
        assert (await ana.post(path)).status == 200
        await lookups.run_once()
    assert len(names.asked) == len(looks) + 1
    names.records[RECORD] = [host_proofs.value_of(ana.user_id)]
    pass_days(api.db, 5 * MINUTE / DAY)
    await lookups.run_once()
    assert await states(ana, store) == {HOST: "verified"}


async def test_accounts_take_turns_at_look_ups(
    api: RestApi, ana: Person, bia: Person, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_proofs, "AT_ONCE", 4)
    for number in range(2):
        hosts = [f"h{number}-{n}.example.com" for n in range(12)]
        assert (await take(ana, *hosts)).status == 201
    assert (await take(bia, "zzz.example.com")).status == 201
    first = await api.db.read(host_proofs.due)
    assert [owner for _, owner in first].count(bia.user_id) == 1


@pytest.mark.slow
async def test_name_servers_that_say_nothing_hold_up_no_request(
    api: RestApi, ana: Person, names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = (await take(ana, HOST, *(f"a{n}.example.com" for n in range(15)))).body["id"]
    names.rcode = None
    monkeypatch.setattr(host_lookups, "SECONDS", 1.0)
    running = asyncio.ensure_future(look(api.db, names).run_once())
    reads = 0
    while not running.done():
        assert (await ana.get("/api/me")).status == 200
        reads += 1
    # All at once, beside the requests.
    assert len(set(names.asked)) == 16
    assert reads > 3
    assert set((await states(ana, store)).values()) == {"error"}


async def test_without_the_setting_a_store_answers_at_once(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lookups_of(config.load(None, {}), db) is None
    async with serving(db, UNLIMITED) as site:
        api = RestApi(site)
        await take(await api.person(), HOST)
        assert await served(api)


@pytest.mark.parametrize("text", ["9.9.9.9", "dns.example.com:53", "9.9.9.9:0", "9.9.9.9:x"])
def test_a_name_server_is_an_address_with_a_port(text: str) -> None:
    with pytest.raises(config.ConfigFaults, match="is not an address with a port"):
        config.load(None, {"CARTEIRO_STOREFRONT__NAME_SERVERS": text})
    assert config.load(None, {"CARTEIRO_STOREFRONT__NAME_SERVERS": "[::1]:53,9.9.9.9:53"})


async def test_the_console_shows_the_record_of_each_hostname(
    api: RestApi, bia: Person, names: Names
) -> None:
    owner = await api.key_of(await api.site.user("maria@example.com"), ("read", "write"))
    store = (await take(owner, HOST)).body["id"]
    others = (await take(bia, "b.example.com")).body["id"]
    async with guest(api.site) as maria:
        await maria.sign_in()
        assert (await maria.get(f"/console/stores/{others}/hostnames")).status in (403, 404)
        path = (await maria.get(f"/console/stores/{store}")).link("Hostnames")
        assert path is not None
        assert "Not looked for yet." in (await maria.get(path)).html
        await look(api.db, names).run_once()
        page = await maria.get(path, Accept_Language="pt-BR")
        assert "O registro não foi encontrado." in page.html
        shown = dict(re.findall(r'<code id="(\w+-1)">([^<]+)<', page.html))
        assert shown["name-1"] == RECORD
        names.records[RECORD] = [shown["value-1"]]
        pass_days(api.db, 1)
        await look(api.db, names).run_once()
        assert "The store answers here." in (await maria.get(path)).html


async def test_the_console_says_when_nothing_is_to_prove(db: Database) -> None:
    async with serving(db, UNLIMITED) as site, guest(site) as maria:
        api = RestApi(site)
        owner = await api.key_of(await site.user("maria@example.com"), ("read", "write"))
        store = (await take(owner, HOST)).body["id"]
        await maria.sign_in()
        html = (await maria.get(f"/console/stores/{store}/hostnames")).html
    assert "without a proof" in html
    assert "TXT record:" not in html
