"""Tests Idempotency-Key: repeated requests write once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

import gateway
from gateway.records import idempotency
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.idempotency import Once, Outcomes
from gateway.rest.body import keep, restore
from gateway.rest.params import once_of
from outbox.database.migration_files import read_migrations
from outbox.database.transaction import Database, Tx
from tests.support.long_limits import served_limits
from tests.support.rest import Person, RestApi

BODY = {"name": "Maria", "unknown": 1}


async def post(who: Person, key: str, body: Any = None, path: str = "/api/contacts") -> Any:
    return await who.post(path, BODY if body is None else body, Idempotency_Key=key)


async def count(who: Person, path: str = "/api/contacts") -> int:
    total: int = (await who.get(path)).body["total"]
    return total


async def test_a_key_belongs_to_its_user_and_path(api: RestApi, ana: Person, bia: Person) -> None:
    await post(ana, "k1")
    assert "Idempotent-Replayed" not in (await post(bia, "k1")).headers
    assert "Idempotent-Replayed" not in (await post(ana, "k1", path="/api/companies")).headers
    other_key = await api.key_of(ana.user_id)
    assert "Idempotent-Replayed" in (await post(other_key, "k1")).headers
    assert [await count(who) for who in (ana, bia)] == [1, 1]


async def test_a_read_only_key_gets_no_stored_response(api: RestApi, ana: Person) -> None:
    await post(ana, "k1")
    reader = await api.key_of(ana.user_id, ("read",))
    reply = await post(reader, "k1")
    assert (reply.status, reply.body["code"]) == (403, "forbidden")


async def test_concurrent_repeats_write_once(api: RestApi, ana: Person) -> None:
    replies = await asyncio.gather(*(post(ana, "k1") for _ in range(12)))
    assert {r.status for r in replies} == {201}
    assert len({(r.text, r.headers["X-Ignored-Fields"]) for r in replies}) == 1
    assert sum("Idempotent-Replayed" not in r.headers for r in replies) == 1
    assert (await count(ana), len(await api.events())) == (1, 1)


async def _answer(tx: Tx) -> web.Response:
    return web.Response(body=b"{}")


def _same(response: web.Response) -> web.Response:
    return response


_KEPT = Outcomes(_same, keep, restore)


def replayed(response: web.Response) -> bool:
    return "Idempotent-Replayed" in response.headers


def ticket(key: str = "k", body: bytes = b"x") -> Once:
    request = make_mocked_request("POST", "/x", {"Idempotency-Key": key}, match_info={})
    use = once_of(Actor("a" * 24, "api_key"), request, body)
    assert use is not None
    return use


async def test_a_first_request_that_takes_too_long(db: Database) -> None:
    """PostgreSQL only: on SQLite all writes wait for each other."""
    if db.engine == "sqlite":
        answers = await asyncio.gather(
            *(idempotency.write(db, ticket(), _KEPT, _answer) for _ in range(2))
        )
        assert sorted(map(replayed, answers)) == [False, True]
        return
    claimed, go = asyncio.Event(), asyncio.Event()

    async def slow(tx: Tx) -> web.Response:
        claimed.set()
        while not go.is_set():
            # The server ends an idle transaction.
            await tx.one("select 1 as one")
        return await _answer(tx)

    first = asyncio.create_task(idempotency.write(db, ticket(), _KEPT, slow))
    await claimed.wait()
    with served_limits(), pytest.raises(Refusal) as caught:
        await idempotency.write(db, ticket(), _KEPT, _answer)
    assert caught.value.code == "idempotency_in_progress"
    go.set()
    assert not replayed(await first)
    assert replayed(await idempotency.write(db, ticket(), _KEPT, _answer))


async def age(db: Database, micros: int) -> None:
    async def unit(tx: Tx) -> None:
        await tx.run("update idempotency set created_at = created_at - $1", micros)

    await db.write(unit)


async def test_a_key_expires_after_a_day(db: Database) -> None:
    await idempotency.write(db, ticket(), _KEPT, _answer)
    await age(db, idempotency.KEPT - 60_000_000)
    assert replayed(await idempotency.write(db, ticket(), _KEPT, _answer))
    await age(db, 120_000_000)
    assert not replayed(await idempotency.write(db, ticket(body=b"y"), _KEPT, _answer))


async def test_the_outcome_of_an_earlier_version_is_replayed(db: Database) -> None:
    sources = read_migrations("gateway", Path(gateway.__path__[0]) / "migrations")
    [before] = [m for m in sources if m.name == "0002_crm"]
    [upgrade] = [m for m in sources if m.name == "0009_outcomes"]
    old = [s for s in before.statements(db.engine) if "idempotency" in s]
    use = ticket()

    async def unit(tx: Tx) -> None:
        await tx.run("drop table idempotency")
        for statement in old:
            await tx.run(statement)
        await tx.run(
            "insert into idempotency (owner_id, key, method, path, fingerprint, status, headers,"
            " body, created_at) values ($1, $2, 'POST', '/x', $3, 201, $4, $5, $6)",
            use.owner_id, use.key, use.fingerprint,
            '{"ETag": "\\"1\\""}', b'{"id":"\xc3\xa9"}', tx.now,
        )  # fmt: skip
        for statement in upgrade.statements(db.engine):
            await tx.run(statement)

    await db.write(unit)
    response = await idempotency.write(db, use, _KEPT, _answer)
    assert (response.status, response.headers["ETag"], response.body) == (
        201, '"1"', '{"id":"é"}'.encode(),
    )  # fmt: skip
    assert replayed(response)
