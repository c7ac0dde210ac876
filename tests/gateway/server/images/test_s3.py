"""Images in a bucket: signed as S3 documents it, stored, served and removed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
import pytest
from aiohttp import web

from gateway.server.config import ConfigFaults, Images, load
from gateway.server.images.images import IMAGES
from gateway.server.images.s3 import signed
from outbox.database.transaction import Database
from tests.gateway.server.images.test_product_images import (
    age,
    drawn,
    file_of,
    product,
    send,
    served,
)
from tests.support.rest import UNLIMITED, RestApi
from tests.support.site import serving

KEYS = {"s3_access_key": "AKIAIOSFODNN7EXAMPLE", "s3_region": "us-east-1"}
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


def test_a_request_is_signed_as_in_the_documented_example() -> None:
    settings = Images(
        s3_endpoint="https://examplebucket.s3.amazonaws.com", s3_secret_key=SECRET, **KEYS
    )
    headers = signed(settings, "GET", "/test.txt", b"", "20130524T000000Z", {"range": "bytes=0-9"})
    signature = headers["Authorization"].rpartition("Signature=")[2]
    assert signature == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"


class Store:
    """A server with one bucket, `shop`, that can refuse."""

    def __init__(self) -> None:
        self.files: dict[str, tuple[bytes, str]] = {}
        self.status = 200

    async def answer(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIA")
        assert request.match_info["bucket"] == "shop"
        name, body = request.match_info["name"], await request.read()
        if self.status != 200:
            return web.Response(status=self.status, text="<Code>SlowDown</Code>")
        if request.method == "PUT":
            self.files[name] = body, request.content_type
        elif request.method == "DELETE":
            self.files.pop(name, None)
            return web.Response(status=204)
        elif name not in self.files:
            return web.Response(status=404, text="<Code>NoSuchKey</Code>")
        return web.Response(body=self.files.get(name, (b"",))[0])


@pytest.fixture
async def store() -> AsyncIterator[tuple[Store, str]]:
    one = Store()
    app = web.Application()
    app.router.add_route("*", "/{bucket}/{name}", one.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield one, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_images_are_kept_in_a_bucket(still: Database, store: tuple[Store, str]) -> None:
    bucket, url = store
    settings = Images(s3_endpoint=url, s3_bucket="shop", s3_secret_key=SECRET, **KEYS)
    async with serving(still, msgspec.structs.replace(UNLIMITED, images=settings)) as site:
        shop = RestApi(site)
        who = await shop.person()
        at = await product(who)
        sent = await send(who, at, file_of(drawn(), "PNG"))
        path = "/images/" + sent.body["url"].rpartition("/")[2]
        assert [kind for _, kind in bucket.files.values()] == ["image/jpeg"]
        status, headers, body = await served(shop, path)
        assert (status, headers["Content-Type"]) == (200, "image/jpeg")
        assert body == next(iter(bucket.files.values()))[0]
        assert (await served(shop, f"/images/{'0' * 40}.jpg"))[0] == 404
        bucket.status = 503
        failed = await send(who, at, file_of(drawn((70, 40)), "PNG"))
        assert failed.status == (await served(shop, path))[0] == 503
        assert "SlowDown" not in failed.text
        bucket.status = 200
        await who.delete(f"/api/products/{at}")
        await age(still)
        await site.app[IMAGES].sweep()
        assert bucket.files == {}


def test_a_bucket_needs_its_keys() -> None:
    with pytest.raises(ConfigFaults) as refused:
        load(
            None,
            {
                "CARTEIRO_IMAGES__S3_ENDPOINT": "https://s3.example.com",
                "CARTEIRO_IMAGES__FOLDER": "x",
            },
        )
    keys = [fault.partition(":")[0] for fault in refused.value.faults]
    assert keys == [
        f"images.{key}" for key in ("s3_bucket", "s3_access_key", "s3_secret_key", "folder")
    ]
