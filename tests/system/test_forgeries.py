"""With a guard off, forged tokens sign somebody in (tests/gateway/graphql/test_identity.py)."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from gateway.domain.storefront.sign_in import idp_tokens
from gateway.domain.storefront.visitors import compact_jws
from gateway.server.config import Config, Egress
from tests.support.forged import forged
from tests.support.issuer import CLIENT, issuing
from tests.support.rest import UNLIMITED, RestApi
from tests.support.shop import open_shop
from tests.support.site import serving
from tests.system.staging import opened

CONFIG = Config(limits=UNLIMITED.limits, egress=Egress(allow_http=True, allow=("127.0.0.0/8",)))
NONCE = "n-1"


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


@pytest.mark.parametrize("guard", GUARDS)
async def test_a_guard_that_is_off_is_seen(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with issuing() as issuer, opened("sqlite") as db, serving(db, CONFIG) as site:
        provider = {"issuer": issuer.url, "clientIds": [CLIENT], "nonceRequired": True}
        shop = await open_shop(RestApi(site), idps=[provider])
        try:
            monkeypatch.setattr(*GUARDS[guard])
            browser, codes = shop.browser(), set[str]()
            for token in (token for tokens in forged(issuer).values() for token in tokens):
                answer = await browser.do("clientIdpLogin", "token", token=token, nonce=NONCE)
                codes.add(answer.code if "errors" in answer.body else "in")
        finally:
            await shop.close()
    assert codes != {"INVALID_TOKEN"}
