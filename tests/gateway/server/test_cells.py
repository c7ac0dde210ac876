"""What each door of a cell says of accounts and stores that another cell has."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest
from msgspec import structs

from gateway.domain.cells import registration
from gateway.domain.cells.directory import CellDirectory
from gateway.domain.cells.registration import Registration
from gateway.server.app_keys import CREDENTIALS
from gateway.server.cell_parts import directory_of
from gateway.server.config import Auth, Cell, Config, Peer
from outbox.database.transaction import Database, Tx
from outbox.queue.upkeep import owner_moves
from outbox.queue.upkeep.moved_owners import followed, homes
from outbox.queue.upkeep.owner_moves import MoveState
from tests.support.console import guest
from tests.support.databases import PostgresServer
from tests.support.movers import opened
from tests.support.rest import UNLIMITED, Person, Reply, RestApi
from tests.support.shop import Browser
from tests.support.site import Site, serving

NAMES = ("one", "two")
ADDRESSES = {name: f"https://{name}.example.com" for name in NAMES}


def configured(name: str, directory: str) -> Config:
    """Return the configuration of a cell with open sign-up."""
    peers = tuple(Peer(other, url) for other, url in ADDRESSES.items() if other != name)
    return structs.replace(
        UNLIMITED, cell=Cell(name, peers, directory), auth=Auth(signup="open", token_hours=1)
    )


@dataclass(frozen=True)
class Pair:
    """Two running cells, and the directory as the second one uses it."""

    one: Site
    two: Site
    directory: CellDirectory
    urls: tuple[str, ...]


@asynccontextmanager
async def cells(server: PostgresServer) -> AsyncIterator[Pair]:
    """Serve two new cells until the block ends."""
    directory_url = await server.empty()
    urls = [await server.fresh() for _ in NAMES]
    try:
        async with AsyncExitStack() as stack:
            sites: list[Site] = []
            for name, url in zip(NAMES, urls, strict=True):
                db: Database = await opened(url)
                stack.push_async_callback(db.close)
                config = configured(name, directory_url)
                sites.append(await stack.enter_async_context(serving(db, config)))
            config = configured("two", directory_url)
            directory = directory_of(config, sites[1].db.clock, sites[1].db.ids)
            assert directory is not None
            stack.push_async_callback(directory.close)
            yield Pair(sites[0], sites[1], directory, (*urls, directory_url))
    finally:
        for url in (*urls, directory_url):
            await server.drop(url)


SIGN_UP = {
    "email": "maria@example.com", "password": "correct horse battery", "name": "Maria",
    "timezone": "America/Sao_Paulo",
}  # fmt: skip
LEAD = {"email": "lia@example.com", "name": "Lia"}


@pytest.fixture
async def pair(postgres_server: PostgresServer) -> AsyncIterator[Pair]:
    async with cells(postgres_server) as made:
        yield made


async def signed_up(site: Site, **values: str) -> Person:
    """Create an account through the door; return it with a key of its own."""
    nobody = RestApi(site).nobody
    made = await nobody.post("/api/auth/signup", SIGN_UP | values)
    assert made.status == 201, made.text
    words = {name: (SIGN_UP | values)[name] for name in ("email", "password")}
    token = (await nobody.post("/api/auth/token", words)).body["token"]
    bearer = Person(site.http, made.body["id"], {"Authorization": f"Bearer {token}"})
    key = (await bearer.post("/api/keys", {"name": "test"})).body["key"]
    for text in (token, key):
        assert text.endswith(f".one.{bearer.user_id}"), text
    return Person(site.http, bearer.user_id, {"X-API-Key": key})


def is_elsewhere(reply: Reply, cell: str) -> None:
    assert reply.status == 421, reply.text
    assert reply.headers["X-Carteiro-Cell"] == cell
    assert reply.body["code"] == "misdirected"
    assert reply.body["url"] == ADDRESSES[cell]


async def test_an_address_is_unique_over_all_cells(pair: Pair) -> None:
    await signed_up(pair.one)
    again = await RestApi(pair.two).nobody.post(
        "/api/auth/signup", SIGN_UP | {"email": "Maria@example.com"}
    )
    assert (again.status, again.faults) == (409, {"email": "taken"})
    assert (await RestApi(pair.two).nobody.post(
        "/api/auth/signup", SIGN_UP | {"email": "lia@example.com"}
    )).status == 201  # fmt: skip


async def test_a_credential_at_the_wrong_cell(pair: Pair) -> None:
    maria = await signed_up(pair.one)
    there = Person(pair.two.http, maria.user_id, maria.headers)
    assert (await maria.get("/api/me")).status == 200
    is_elsewhere(await there.get("/api/me"), "one")
    is_elsewhere(await there.post("/api/contacts", {"name": "Lia"}), "one")
    # A key of nobody is nobody's, also with the name of a cell that does not exist.
    for text in ("crt_x", maria.headers["X-API-Key"].replace(".one.", ".three.")):
        assert (await there.get("/api/me", X_API_Key=text)).status == 401
    # One that was revoked in its own cell is refused there, and nobody is sent around.
    wrong = maria.headers["X-API-Key"].replace("crt_", "crt_0", 1)
    assert (await maria.get("/api/me", X_API_Key=wrong)).status == 401
    # A sign-in is sent to its cell, whatever the password is, and one of nobody is refused.
    words = {name: SIGN_UP[name] for name in ("email", "password")}
    is_elsewhere(await RestApi(pair.two).nobody.post("/api/auth/token", words), "one")
    for site, change in ((pair.two, {"email": "n@example.com"}), (pair.one, {"password": "wrong"})):
        refused = await RestApi(site).nobody.post("/api/auth/token", words | change)
        assert refused.status == 401


@pytest.mark.slow
async def test_the_console_at_the_wrong_cell(pair: Pair) -> None:
    await signed_up(pair.one)
    async with guest(pair.one) as here, guest(pair.two) as there:
        assert (await here.sign_in()).status == 200
        refused = await there.sign_in()
        assert refused.status == 421
        assert refused.headers["X-Carteiro-Cell"] == "one"
        assert 'href="https://one.example.com/console"' in refused.html
        assert "Your account is in another cell of this service." in refused.html
        [cookie] = [one for one in here.http.cookie_jar if one.key == "carteiro"]
        assert ".one." in cookie.value
        there.http.cookie_jar.clear()
        moved = await there.get("/console", Cookie=f"carteiro={cookie.value}")
        assert moved.status == 421
        assert moved.headers["X-Carteiro-Cell"] == "one"
        # The browser is free to sign in here now.
        assert ".one." not in moved.headers["Set-Cookie"]


@pytest.mark.slow
async def test_a_hostname_at_the_wrong_cell(pair: Pair) -> None:
    maria = await signed_up(pair.one)
    store = {"hostname": "shop.example", "name": "Shop", "aliases": ["www.shop.example"]}
    made = await maria.post("/api/stores", store)
    assert made.status == 201
    lia = Person(pair.two.http, "", {})
    token = (await lia.post("/api/auth/signup", SIGN_UP | {"email": "lia@example.com"})).body["id"]
    owner = await RestApi(pair.two).key_of(token)
    taken = await owner.post("/api/stores", {"hostname": "www.shop.example", "name": "Other"})
    assert (taken.status, taken.faults) == (409, {"hostname": "taken"})
    here, there = (Browser(site.url, "shop.example") for site in (pair.one, pair.two))
    try:
        refused = await there.do("lead", "success", **LEAD)
        assert (refused.status, refused.code) == (421, "MISDIRECTED")
        assert refused.headers["X-Carteiro-Cell"] == "one"
        assert refused.error["extensions"]["url"] == ADDRESSES["one"]
        assert "data" not in refused.body
        there.hostname = "nobody.example"
        unknown = await there.do("lead", "success", **LEAD)
        assert (unknown.status, unknown.code) == (200, "STORE_NOT_FOUND")
        assert (await here.do("lead", "success", **LEAD)).data
        cart = await here.do("cartAddItem", "cart { id }", productId="x", quantity=1)
        assert cart.status == 200
    finally:
        await here.close()
        await there.close()
    # What a store gives up is settled a minute later: it rests, also for the owners of other cells.
    path = f"/api/stores/{made.body['id']}"
    assert (await maria.put(path, {"aliases": []})).status == 200
    assert ("hostname", "www.shop.example") in await unsettled(pair, "one")
    assert (await maria.delete(path)).status == 200
    assert ("hostname", "shop.example") in await unsettled(pair, "one")
    kept = await pair.one.db.read(registration.names_of, maria.user_id, "one")
    assert {one.value for one in kept if one.kind == "hostname"} == {
        "shop.example", "www.shop.example",
    }  # fmt: skip


async def unsettled(pair: Pair, cell: str) -> set[tuple[str, str]]:
    """Return the names that a cell has to settle, a minute from now or earlier."""

    async def read(tx: Tx) -> set[tuple[str, str]]:
        rows = await tx.all("select kind, value from names where cell = $1 and not settled", cell)
        return {(row["kind"], row["value"]) for row in rows}

    return await pair.directory._db.read(read)


async def test_an_owner_who_has_moved(pair: Pair) -> None:
    maria = await signed_up(pair.one)
    db = pair.one.db
    async with followed(db, {"two": ADDRESSES["two"]}):
        for state, status in (("leaving", 503), ("gone", 421)):
            at = MoveState(state, "m", "two")  # type: ignore[arg-type]
            await db.write(owner_moves.stand, maria.user_id, at)
            db.closed_owners = homes(await db.read(owner_moves.closed_owners), ADDRESSES)
            refused = await maria.post("/api/contacts", {"name": "Lia"})
            assert refused.status == status, refused.text
        is_elsewhere(refused, "two")

        async def forget(tx: Tx) -> None:
            await tx.run("delete from api_keys where owner_id = $1", maria.user_id)

        await db.write(forget)
        pair.one.app[CREDENTIALS].forget()
        is_elsewhere(await maria.get("/api/me"), "two")


async def test_a_credential_whose_rows_have_not_arrived(pair: Pair) -> None:
    maria = await signed_up(pair.one)
    there = Person(pair.two.http, maria.user_id, maria.headers)
    # The process has not heard of the move.
    at = MoveState("arriving", "m", "one")
    await pair.two.db.write(owner_moves.stand, maria.user_id, at)
    refused = await there.get("/api/me")
    assert (refused.status, refused.body["code"]) == (503, "moving")
    assert refused.headers["Retry-After"] == "1"


async def test_the_duties_make_the_directory_true(pair: Pair) -> None:
    lia = await pair.two.user("lia@example.com")
    registration = Registration(pair.two.db, pair.directory, "two")
    await registration.register()
    page = await pair.directory.page("email", "")
    assert [(one.value, one.cell, one.owner_id) for one in page] == [
        ("lia@example.com", "two", lia)
    ]

    async def forget(tx: Tx) -> None:
        await tx.run("update users set folded_email = 'l@example.com' where id = $1", lia)

    await pair.two.db.write(forget)
    await registration.register()
    assert await unsettled(pair, "two") == {("email", "lia@example.com")}
    await pair.directory._db.write(_older)
    await registration.settle()
    assert [one.value for one in await pair.directory.page("email", "")] == ["l@example.com"]


async def _older(tx: Tx) -> None:
    await tx.run("update names set changed_at = changed_at - interval '61 seconds'")
