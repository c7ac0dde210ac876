"""Forged tokens sign nobody in, and with a guard off some of them do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from types import ModuleType
from typing import Any

import pytest

from gateway.domain.storefront.sign_in import idp_tokens
from gateway.domain.storefront.visitors import compact_jws
from gateway.server.config import Config, Egress
from gateway.server.storefront import STOREFRONT
from tests.support.engines import Engine
from tests.support.faults import ENGINES
from tests.support.forged import forged, forged_sessions
from tests.support.issuer import CLIENT, Issuer, issuing
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import Browser, Shop, open_shop
from tests.support.site import serving
from tests.system.staging import opened

CONFIG = Config(limits=UNLIMITED.limits, egress=Egress(allow_http=True, allow=("127.0.0.0/8",)))
NONCE = "n-1"
ANA = {"name": "Ana Souza", "email": "ana@example.com", "password": "segredo-1"}
CLIENT_QUERY = "query ($h: String!) { client(hostname: $h) { user { name } } }"


def _nothing(*_: Any) -> None:
    """Check nothing."""


def _unsigned(token: str, *_: Any) -> dict[str, Any]:
    """Return the payload whoever signed it."""
    return compact_jws.payload_of(token)


GUARDS: Mapping[str, tuple[ModuleType, str, Any]] = {
    "signatures are not checked": (compact_jws, "verified", _unsigned),
    "headers are not checked": (idp_tokens, "_check_header", _nothing),
    "claims are not checked": (idp_tokens, "_check_claims", _nothing),
}
"""What to break; each must let a forged token in."""


async def run_forgeries(engine: Engine) -> dict[str, Any]:
    """Send every forged token; return the counts by kind, and what was not refused."""
    async with _shop(engine) as (shop, issuer):
        id_tokens, findings = await _id_tokens(shop, issuer)
        sessions, more = await _sessions(shop)
        findings += more
    return {
        "id_tokens": sum(id_tokens.values()), "id_tokens_by_kind": id_tokens,
        "session_tokens": sum(sessions.values()), "session_tokens_by_kind": sessions,
        "findings": findings, "pass": not findings,
    }  # fmt: skip


async def run_unguarded(engine: Engine, guard: str) -> list[str]:
    """Send the forged id_tokens with a guard off; return what was not refused."""
    with _broken(*GUARDS[guard]):
        async with _shop(engine) as (shop, issuer):
            return (await _id_tokens(shop, issuer))[1]


async def _id_tokens(shop: Shop, issuer: Issuer) -> tuple[dict[str, int], list[str]]:
    browser = shop.browser()
    kinds = forged(issuer)
    findings = [
        f"{kind} {place}: {told}"
        for kind, tokens in kinds.items()
        for place, token in enumerate(tokens)
        if (told := await _entered(browser, token)) != "INVALID_TOKEN"
    ]
    # The same browser gets in with the token that they imitate.
    told = await _entered(browser, issuer.token(nonce=NONCE))
    findings += [] if told == "in" else [f"the true token: {told}"]
    return {kind: len(tokens) for kind, tokens in kinds.items()}, findings


async def _entered(browser: Browser, token: str) -> str:
    answer = await browser.do("clientIdpLogin", "token", token=token, nonce=NONCE)
    if answer.status != 200:
        return f"status {answer.status}"
    return answer.code if "errors" in answer.body else "in"


async def _sessions(shop: Shop) -> tuple[dict[str, int], list[str]]:
    """Send forged session tokens, as a header (INVALID_TOKEN) and as a cookie (a visitor)."""
    signed_up = await shop.browser().do("clientSignup", "token", **(ANA | {"email": "b@b.example"}))
    token = signed_up.data["clientSignup"]["token"]
    stranger = shop.browser()
    kinds = forged_sessions(token, shop.api.site.app[STOREFRONT].tokens)
    findings = []
    variables = {"h": shop.hostname}

    async def look(**headers: Any) -> str:
        answer = await stranger.send(CLIENT_QUERY, variables, **headers)
        if "errors" in answer.body:
            return answer.code
        return "visitor" if answer.data["client"]["user"] is None else "in"

    for kind, tokens in kinds.items():
        for place, each in enumerate(tokens):
            told = (
                await look(Authorization=f"Bearer {each}"),
                await look(Cookie=f"authJwtClient={each}"),
            )
            if told != ("INVALID_TOKEN", "visitor"):
                findings.append(f"session, {kind} {place}: {told}")
    told = await look(Authorization=f"Bearer {token}"), await look(Cookie=f"authJwtClient={token}")
    findings += [] if told == ("in", "in") else [f"the true session token: {told}"]
    return {kind: len(tokens) for kind, tokens in kinds.items()}, findings


@asynccontextmanager
async def _shop(engine: Engine) -> AsyncIterator[tuple[Shop, Issuer]]:
    async with issuing() as issuer, opened(engine) as db, serving(db, CONFIG) as site:
        provider = {"issuer": issuer.url, "clientIds": [CLIENT], "nonceRequired": True}
        shop = await open_shop(RestApi(site), idps=[provider])
        try:
            yield shop, issuer
        finally:
            await shop.close()


@contextmanager
def _broken(module: ModuleType, name: str, wrong: Any) -> Iterator[None]:
    right = getattr(module, name)
    setattr(module, name, wrong)
    try:
        yield
    finally:
        setattr(module, name, right)


LEAST, LEAST_OF_A_KIND = 60, 4

pytestmark = [pytest.mark.proof, pytest.mark.timeout(600)]


@ENGINES
async def test_forged_tokens_sign_nobody_in(engine: Engine) -> None:
    told = await run_forgeries(engine)
    assert told["pass"], told
    assert told["id_tokens"] >= LEAST
    for kinds in (told["id_tokens_by_kind"], told["session_tokens_by_kind"]):
        assert min(kinds.values()) >= LEAST_OF_A_KIND, kinds


@pytest.mark.parametrize("guard", GUARDS)
async def test_a_guard_that_is_off_is_seen(guard: str) -> None:
    assert await run_unguarded("sqlite", guard)
