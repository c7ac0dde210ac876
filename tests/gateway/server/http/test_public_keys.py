"""The public keys at /.well-known/carteiro/keys, as a JWKS of outside libraries."""

from __future__ import annotations

import jwt
import pytest
from joserfc.jwk import KeySet

from gateway.server.app_keys import KEYRING
from gateway.server.http import public_keys
from outbox.errors import DatabaseUnavailable
from outbox.ids import Ids
from outbox.webhooks import signing_keys
from tests.support.failing import failing
from tests.support.site import Site

PATH = "/.well-known/carteiro/keys"
sqlite = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)


async def rotated(site: Site) -> str:
    ring = site.app[KEYRING]
    return (await site.db.write(signing_keys.rotate, ring, Ids().token(32))).id


async def test_everybody_gets_the_keys_that_sign(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_keys, "READ_AGAIN_SECONDS", 0.0)
    async with site.http.get(PATH) as answer:
        assert (answer.status, await answer.json(content_type=None)) == (200, {"keys": []})
    first, second = await rotated(site), await rotated(site)
    async with site.http.get(PATH) as answer:
        assert answer.headers["Content-Type"] == "application/jwk-set+json"
        assert answer.headers["Cache-Control"] == "public, max-age=3600"
        tag, document = answer.headers["ETag"], await answer.json(content_type=None)
    assert [key["kid"] for key in document["keys"]] == [second, first]
    for key in document["keys"]:
        assert {name: key[name] for name in key if name not in ("x", "kid")} == {
            "kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA",
        }  # fmt: skip
    # Outside libraries read it, and compute the same ids.
    assert [key.key_id for key in jwt.PyJWKSet.from_dict(document).keys] == [second, first]
    assert [key.thumbprint() for key in KeySet.import_key_set(document).keys] == [second, first]
    async with site.http.get(PATH, headers={"If-None-Match": tag}) as answer:
        assert (answer.status, answer.headers["ETag"]) == (304, tag)
    await rotated(site)
    async with site.http.get(PATH, headers={"If-None-Match": tag}) as answer:
        assert answer.status == 200
    async with site.http.head(PATH) as answer:
        assert answer.status == 200
    async with site.http.post(PATH) as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "GET,HEAD")


@sqlite
async def test_the_database_is_not_read_for_each_request(site: Site) -> None:
    async with site.http.get(PATH) as answer:
        before = await answer.read()
    await rotated(site)
    async with site.http.get(PATH) as answer:
        assert await answer.read() == before


@sqlite
async def test_receivers_get_the_keys_while_the_database_cannot_be_read(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = DatabaseUnavailable("busy", "down")
    failing(monkeypatch, site.db, "read", signing_keys.listed, down)
    async with site.http.get(PATH) as answer:
        assert answer.status == 503
    key = await rotated(site)
    async with site.http.get(PATH) as answer:
        before = await answer.read()
    monkeypatch.setattr(public_keys, "READ_AGAIN_SECONDS", 0.0)
    failing(monkeypatch, site.db, "read", signing_keys.listed, down)
    async with site.http.get(PATH) as answer:
        assert (answer.status, await answer.read()) == (200, before)
    await rotated(site)
    async with site.http.get(PATH) as answer:
        assert key in await answer.text()
        assert await answer.read() != before
