"""Tests sign-up and changes of the own account."""

from typing import Any

import pytest

from gateway.server.config import Auth, Config, Limits
from outbox.database.transaction import Database
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


@pytest.mark.parametrize(
    ("language", "asked", "first"),
    [(None, "", "lead"), (None, "pt-BR,en;q=0.5", "Contato"), ("pt-BR", "en", "Contato"),
     ("en", "pt-BR", "lead")],
)  # fmt: skip
async def test_a_new_account_has_stages_in_its_language(
    db: Database, language: str | None, asked: str, first: str
) -> None:
    async with serving(db, open_to_all(sign_in_per_minute=0, forms_per_minute=0)) as site:
        body = SENT | ({"language": language} if language else {})
        headers = {"Accept-Language": asked}
        async with site.http.post("/api/auth/signup", json=body, headers=headers) as answer:
            assert answer.status == 201
            user = await answer.json()
        sign_in = {"email": SENT["email"], "password": SENT["password"]}
        _, token = await posted(site, "/api/auth/token", sign_in)
        bearer = {"Authorization": f"Bearer {token['token']}"}
        async with site.http.get("/api/settings/pipeline", headers=bearer) as answer:
            assert (await answer.json())["stages"][0] == first
        async with site.http.get("/api/me", headers=bearer) as answer:
            shown = {"scopes": ["read", "write"], "language": language}
            assert (await answer.json()) == user | shown


@pytest.mark.parametrize("limit", ["forms_per_minute", "sign_in_per_minute"])
async def test_sign_ups_are_limited(still: Database, limit: str) -> None:
    none = {"forms_per_minute": 0, "sign_in_per_minute": 0}
    async with serving(still, open_to_all(**none | {limit: 2})) as site:
        seen = [(await posted(site, "/api/auth/signup", {}))[0] for _ in range(3)]
        assert seen == [400, 400, 429]
