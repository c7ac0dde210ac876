"""Tests sign-up and changes of the own account."""

from typing import Any

import pytest

from gateway.server.config import Auth, Config, Limits
from outbox.database.transaction import Database
from tests.support.rest import Person, RestApi
from tests.support.site import Site, serving

SENT = {"email": "Rui@Example.com", "password": "correct horse battery", "name": "Rui Costa"}


def open_to_all(**limits: Any) -> Config:
    return Config(auth=Auth(signup="open"), limits=Limits(**limits))


async def posted(site: Site, path: str, body: Any) -> tuple[int, Any]:
    async with site.http.post(path, json=body) as answer:
        return answer.status, await answer.json()


async def test_sign_up_is_closed_by_default(site: Site) -> None:
    for body in (SENT, {}, None):
        status, reply = await posted(site, "/api/auth/signup", body)
        assert (status, reply["code"]) == (403, "forbidden")
        assert "Sign-up is closed" in reply["error"]


async def test_sign_up_creates_an_account_that_can_sign_in(db: Database) -> None:
    async with serving(db, open_to_all(sign_in_per_minute=0, forms_per_minute=0)) as site:
        async with site.http.post("/api/auth/signup", json=SENT | {"admin": True}) as answer:
            user = await answer.json()
            assert (answer.status, answer.headers["Cache-Control"]) == (201, "no-store")
            assert answer.headers["X-Ignored-Fields"] == "admin"
        assert user == {
            "id": user["id"], "email": "Rui@Example.com", "name": "Rui Costa",
            "timezone": "America/Sao_Paulo", "createdAt": user["createdAt"],
        }  # fmt: skip
        sign_in = {"email": "rui@example.com", "password": SENT["password"]}
        status, token = await posted(site, "/api/auth/token", sign_in)
        assert status == 200
        bearer = {"Authorization": f"Bearer {token['token']}"}
        async with site.http.get("/api/me", headers=bearer) as answer:
            assert (await answer.json()) == user | {"scopes": ["read", "write"], "language": None}
        status, reply = await posted(site, "/api/auth/signup", SENT | {"email": "RUI@example.com"})
        assert (status, reply["code"]) == (409, "conflict")
        assert reply["details"][0]["field"] == "email"
        there = SENT | {"email": "t@example.com", "timezone": "Asia/Tokyo"}
        status, reply = await posted(site, "/api/auth/signup", there)
        assert (status, reply["timezone"]) == (201, "Asia/Tokyo")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"email": None}, "email"), ({"email": "rui"}, "email"), ({"email": 5}, "email"),
        ({"password": "short"}, "password"), ({"password": "x" * 129}, "password"),
        ({"password": "TrustNo1"}, "password"), ({"password": SENT["email"]}, "password"),
        ({"password": None}, "password"), ({"name": " "}, "name"), ({"name": None}, "name"),
        ({"timezone": "Mars/Base"}, "timezone"), ({"timezone": "localtime"}, "timezone"),
        ({"timezone": None}, "timezone"), ({"timezone": "../etc/passwd"}, "timezone"),
    ],
)  # fmt: skip
async def test_an_invalid_sign_up_is_refused(db: Database, change: Any, field: str) -> None:
    async with serving(db, open_to_all(sign_in_per_minute=0, forms_per_minute=0)) as site:
        status, reply = await posted(site, "/api/auth/signup", SENT | change)
        assert (status, [d["field"] for d in reply["details"]]) == (400, [field])
        assert (await posted(site, "/api/auth/signup", {}))[1]["details"][2]["field"] == "name"


@pytest.mark.parametrize("limit", ["forms_per_minute", "sign_in_per_minute"])
async def test_sign_ups_are_limited(db: Database, limit: str) -> None:
    none = {"forms_per_minute": 0, "sign_in_per_minute": 0}
    async with serving(db, open_to_all(**none | {limit: 2})) as site:
        seen = [(await posted(site, "/api/auth/signup", {}))[0] for _ in range(3)]
        assert seen == [400, 400, 429]


async def test_permissions_to_change_an_account(api: RestApi, ana: Person) -> None:
    for body, faults in (
        ({"timezone": "Mars"}, {"timezone": "invalid_timezone"}),
        ({"timezone": "america/sao_paulo"}, {"timezone": "invalid_timezone"}),
        ({"timezone": None, "name": ""}, {"timezone": "not_nullable", "name": "too_short"}),
        ({"timezone": 3}, {"timezone": "wrong_type"}),
    ):
        reply = await ana.call("PATCH", "/api/me", body)
        assert (reply.status, reply.faults) == (400, faults)
    reader = await api.key_of(ana.user_id, ["read"])
    assert (await reader.call("PATCH", "/api/me", {})).status == 403
    assert (await api.nobody.call("PATCH", "/api/me", {})).status == 401
