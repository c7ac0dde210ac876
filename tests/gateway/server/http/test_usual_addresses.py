"""Addresses that people try first lead to ours."""

from __future__ import annotations

import pytest

from gateway.server.http.usual_addresses import USUAL
from tests.support.site import Site

pytestmark = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)


async def test_each_leads_to_a_page_or_a_document(site: Site) -> None:
    assert USUAL == {
        "/docs": "/api/docs",
        "/openapi.json": "/api/openapi.json",
        "/console/login": "/console/sign-in",
    }
    for path, ours in USUAL.items():
        for method in ("GET", "HEAD"):
            async with site.http.request(method, path, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (303, ours)
        async with site.http.get(path) as answer:
            assert (answer.status, answer.url.path) == (200, ours)
