"""Bodies on the REST door: their codings, and how much is read of somebody not yet known."""

import asyncio
import gzip
import zlib

import pytest

from tests.support.site import Site

sqlite = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
GOOD = b'{"name":"x"}'


async def _post(site: Site, body: bytes, key: str, **headers: str) -> tuple[int, str]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with site.http.post(
        "/api/contacts",
        data=body,
        headers={"X-API-Key": key, "Content-Type": "application/json"} | named,
    ) as answer:
        return answer.status, (await answer.json()).get("code", "")


@pytest.mark.slow
@sqlite
async def test_a_body_may_be_compressed_in_two_ways(site: Site) -> None:
    key = await site.key(await site.user())
    raw = zlib.compress(GOOD)[2:-4]
    for coding, body in (
        ("gzip", gzip.compress(GOOD)), ("deflate", zlib.compress(GOOD)), ("deflate", raw),
        ("GZIP", gzip.compress(GOOD)), ("identity", GOOD),
    ):  # fmt: skip
        assert (await _post(site, body, key, Content_Encoding=coding))[0] == 201, coding
    for broken in (gzip.compress(GOOD)[:-9], gzip.compress(GOOD) + b"x", b"", b"\x1f\x8b"):
        assert (await _post(site, broken, key, Content_Encoding="gzip"))[1] == "invalid_json"
    bomb = gzip.compress(b" " * 50_000_000)
    assert (await _post(site, bomb, key, Content_Encoding="gzip"))[0] == 413


@sqlite
@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "x" * 100])
async def test_an_unknown_coding_is_told_so(site: Site, coding: str) -> None:
    key = await site.key(await site.user())
    assert await _post(site, GOOD, key, Content_Encoding=coding) == (415, "unsupported_media_type")
    kind = {"Content-Type": "application/json"}
    headers = kind | {"X-API-Key": key, "Content-Encoding": coding}
    async with site.http.post("/api/contacts", data=GOOD, headers=headers) as answer:
        assert answer.headers["Accept-Encoding"] == "gzip, deflate"
        assert (await answer.json()).keys() == {"error", "code", "requestId"}


@sqlite
async def test_nothing_is_read_before_a_credential_is_known(site: Site) -> None:
    for line in ("POST /api/contacts", "PUT /api/contacts/1", "POST /api/keys", "POST /api/nothing",
                 "POST /api/quotes/1/send", "PUT /api/settings/pipeline"):  # fmt: skip
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(f"{line} HTTP/1.1\r\nHost: a\r\nX-API-Key: x\r\n".encode())
        writer.write(b"Content-Length: 60000\r\n\r\n")
        assert (await reader.readline())[9:12] in (b"401", b"404"), line
        writer.close()


@sqlite
async def test_little_is_read_of_somebody_unknown(site: Site) -> None:
    big = b'{"email":"' + b"x" * 70_000 + b'","password":"y"}'
    kind = {"Content-Type": "application/json"}
    async with site.http.post("/api/auth/token", data=big, headers=kind) as answer:
        assert (answer.status, (await answer.json())["code"]) == (413, "payload_too_large")
    packed = kind | {"Content-Encoding": "gzip"}
    async with site.http.post("/api/auth/token", data=b"x", headers=packed) as answer:
        assert answer.status == 415
