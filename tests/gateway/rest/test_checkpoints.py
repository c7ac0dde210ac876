"""Checkpoints over the API: one's own, page by page, and one on demand."""

from __future__ import annotations

from collections.abc import AsyncIterator

import jwt
import pytest

from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Database, Tx
from outbox.ids import Ids
from outbox.queue.proof import chain_checkpoints
from tests.support.document import answer_faults
from tests.support.drain import add_webhook
from tests.support.rest import UNLIMITED, Person, RestApi
from tests.support.site import serving

PATH = "/api/log/checkpoints"


@pytest.fixture
async def api(db: Database) -> AsyncIterator[RestApi]:
    async with serving(db, UNLIMITED) as site:
        yield RestApi(site)


async def grow(tx: Tx) -> None:
    await tx.run("update lanes set chain_place = chain_place + 1, chain_digest = $1", "a" * 64)


async def webhook_of(api: RestApi, person: Person) -> str:
    ring = api.site.app[KEYRING]
    url = "https://hooks.example.com/"
    made, _ = await add_webhook(api.db, ring, url, "contact.created", owner=person.user_id)
    return made


async def test_one_is_made_on_demand_and_verifies_with_the_published_keys(
    api: RestApi, ana: Person, bia: Person
) -> None:
    webhook = await webhook_of(api, ana)
    nothing = await ana.post(PATH)
    assert (nothing.status, nothing.body) == (201, {"data": []})
    await api.db.write(grow)
    made = await ana.post(PATH)
    assert made.status == 201
    assert answer_faults("POST", PATH, 201, made.body) == []
    [one] = made.body["data"]
    async with api.site.http.get("/.well-known/carteiro/keys") as answer:
        keys = jwt.PyJWKSet.from_dict(await answer.json(content_type=None))
    claims = jwt.decode(one["checkpoint"], keys[one["keyId"]].key, algorithms=["EdDSA"])
    assert (claims["owner"], claims["number"]) == (ana.user_id, one["number"])
    assert [end["id"] for end in claims["webhooks"]] == [webhook]
    # It is Ana's alone.
    assert (await bia.get(PATH)).body == {"data": []}
    assert (await ana.get(PATH)).body == {"data": [one]}


async def test_they_are_listed_page_by_page_newest_first(api: RestApi, ana: Person) -> None:
    await webhook_of(api, ana)
    ring = api.site.app[KEYRING]
    for _ in range(5):
        await api.db.write(grow)
        await api.db.write(chain_checkpoints.make, ana.user_id, "", ring, Ids().token(32))
    numbers, path = [], f"{PATH}?limit=2"
    while path:
        page = await ana.get(path)
        assert answer_faults("GET", PATH, 200, page.body) == []
        numbers.append([one["number"] for one in page.body["data"]])
        cursor = page.body.get("nextCursor")
        path = f"{PATH}?limit=2&after={cursor}" if cursor else ""
        assert ("Link" in page.headers) == bool(cursor)
    assert numbers == [[5, 4], [3, 2], [1]]
    for cursor in ("x", "-1", "1.5", "9" * 19, "²"):
        wrong = await ana.get(f"{PATH}?after={cursor}")
        assert (wrong.status, set(wrong.faults)) == (400, {"after"}), cursor


async def test_reading_and_making_need_their_scopes(api: RestApi) -> None:
    user = await api.site.user()
    for scope, status in (("read", 403), ("write", 201)):
        person = await api.key_of(user, scopes=[scope])
        assert (await person.post(PATH)).status == status
    assert (await api.nobody.get(PATH)).status == 401
