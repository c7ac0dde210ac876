"""Unread responses to clients without an account: they count, and leave room for accounts."""

import asyncio
import socket
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from PIL import Image

from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.server.app_keys import CALLER
from gateway.server.config import Images, Limits
from gateway.server.http.answers import ANSWERS, FLOWING, Budget, carried
from gateway.server.http.client_address import CLIENT, Client
from outbox.database.transaction import Database
from tests.gateway.server.images.test_product_images import file_of, product, send
from tests.support.rest import UNLIMITED, RestApi
from tests.support.site import serving
from tests.support.waiting import until

SHARE = 1_000_000
HERE, THERE = "192.0.2.1", "2001:db8:0:1::7"


def answered(
    app: web.Application, address: str, path: str, method: str = "GET", size: int = SHARE // 2,
    *, owner: str | None = None, must: bool = False,
) -> int:  # fmt: skip
    """Return the status of a response of `size` bytes that nobody reads."""
    request = make_mocked_request(method, path, app=app)
    request[CLIENT] = Client(address, "http", "a", outside=False)
    if owner is not None:
        request[CALLER] = Actor(owner, "api_key")
    try:
        return carried(request, web.Response(body=bytes(size)), must=must).status
    except Refusal as refusal:
        return {"unavailable": 503}[refusal.code]


@pytest.fixture
def app() -> web.Application:
    app = web.Application()
    app[ANSWERS] = Budget(SHARE * 8, SHARE)
    return app


@pytest.mark.parametrize(
    "path", ["/images/a.jpg", "/documents/pdf?token=x", "/graphql?query=x", "/console/login", "/"]
)
def test_an_address_has_a_share_of_unread_bytes(app: web.Application, path: str) -> None:
    assert [answered(app, HERE, path) for _ in range(3)] == [200, 200, 503]
    # Those of one network of IPv6 are one, and others have theirs.
    near = "2001:db8:0:1:ffff::1"
    assert [answered(app, one, path) for one in (THERE, near, near)] == [200, 200, 503]
    assert app[ANSWERS].held == SHARE * 2
    # Small responses, those without a body and those of probes are always sent.
    assert answered(app, HERE, path, size=16_384) == 200
    assert answered(app, HERE, path, "HEAD") == 200
    assert answered(app, HERE, "/metrics", must=True) == 200


@pytest.mark.parametrize("owner", [None, "a" * 24])
def test_a_first_response_may_be_larger_than_a_share(
    app: web.Application, owner: str | None
) -> None:
    """Nobody could ever read it otherwise, as long as nobody else had anything unread."""
    assert answered(app, HERE, "/api/tasks", size=SHARE * 2, owner=owner) == 200
    assert answered(app, HERE, "/api/tasks", size=SHARE // 2, owner=owner) == 503
    assert answered(app, THERE, "/api/tasks", size=SHARE * 7) == 503
    app[ANSWERS] = Budget(SHARE, SHARE)
    assert answered(app, HERE, "/api/tasks", size=SHARE * 7, owner=owner) == 200


def test_what_may_have_been_written_is_answered_and_counts(app: web.Application) -> None:
    assert [answered(app, HERE, "/graphql", "POST") for _ in range(4)] == [200] * 4
    assert app[ANSWERS].held == SHARE * 2
    assert answered(app, HERE, "/images/a.jpg") == 503


def test_clients_without_an_account_leave_half_of_the_room_to_accounts(
    app: web.Application,
) -> None:
    addresses = [f"192.0.2.{n}" for n in range(20)]
    statuses = [answered(app, one, "/images/a.jpg") for one in addresses]
    assert statuses == [200] * 8 + [503] * 12
    owners = [f"{n:024x}" for n in range(12)]
    statuses = [answered(app, HERE, "/api/tasks", owner=one) for one in owners]
    assert statuses == [200] * 8 + [503] * 4


async def test_unread_images_hold_up_their_address_alone(db: Database, tmp_path: Path) -> None:
    config = msgspec.structs.replace(
        UNLIMITED,
        images=Images(folder=str(tmp_path / "images")),
        limits=Limits(answer_bytes=FLOWING * 8, read_per_second=0, storefront_per_minute=0),
    )
    async with serving(db, config) as site:
        shop = RestApi(site)
        who = await shop.person()
        noise = file_of(Image.effect_noise((1_200, 1_200), 120), "PNG")
        sent = await send(who, await product(who), noise)
        assert FLOWING // 2 < sent.body["bytes"] < FLOWING, sent.text
        path = "/images/" + sent.body["url"].rpartition("/")[2]
        wire = socket.socket()
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        wire.setblocking(False)
        await asyncio.get_running_loop().sock_connect(wire, ("127.0.0.1", site.port))
        reader, writer = await asyncio.open_connection(sock=wire, limit=4_096)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())

        async def status(path: str) -> int:
            async with site.http.get(path) as answer:
                await answer.read()
                return answer.status

        try:
            assert b" 200 " in await reader.readline()
            assert await status(path) == 503
            assert await status("/livez") == 200
            assert (await who.get("/api/products")).status == 200
        finally:
            writer.transport.abort()

        async def free() -> bool:
            return await status(path) == 200

        assert await until(free)


async def test_an_address_with_unread_bytes_begins_no_operation(db: Database) -> None:
    async with serving(db, UNLIMITED) as site:
        budget = site.app[ANSWERS]
        query = {"query": "mutation { __typename }"}
        for held, status in ((budget.share - 1, 200), (budget.share, 503)):
            budget.take("127.0.0.1", held, must=True)
            async with site.http.post("/graphql", json=query) as answer:
                assert answer.status == status, await answer.text()
                if status == 503:
                    assert answer.headers["Retry-After"] == "1"
                    assert (await answer.json())["errors"][0]["extensions"]["code"] == "UNAVAILABLE"
            budget.give("127.0.0.1", held)
