"""The headers that every answer carries, and what a write tells a key that may not read."""

import pytest

from gateway.server.config import Config, Metrics, Server
from outbox.database.transaction import Database
from tests.support.site import Site, serving

sqlite = pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)


@sqlite
async def test_no_browser_guesses_what_an_answer_is(site: Site) -> None:
    for path in ("/livez", "/readyz", "/metrics", "/api/contacts", "/api/docs", "/console/nothing",
                 "/api/openapi.json", "/nothing", "/console/sign-in", "/"):  # fmt: skip
        async with site.http.get(path, allow_redirects=False) as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff", path
            assert "Strict-Transport-Security" not in answer.headers


@sqlite
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200), ("127.0.0.1:9090", 200), ("[::1]:9090", 200), ("localhost:9090", 200),
        ("carteiro", 200), ("crm.example.com", 200), ("CRM.example.com.:443", 200),
        ("scrape.internal:8080", 200), ("evil.example", 403), ("127.0.0.1.evil.example", 403),
        ("crm.example.com.evil.example", 403), (".", 403),
    ],
)  # fmt: skip
async def test_metrics_are_told_under_names_of_ours(db: Database, host: str, status: int) -> None:
    config = Config(
        server=Server(public_url="https://crm.example.com"),
        metrics=Metrics(hosts=("scrape.internal",), token="t"),
    )
    async with serving(db, config) as site:
        async with site.http.get("/metrics", headers={"Host": host}) as answer:
            assert answer.status == status
            if status == 403:
                assert "[metrics] hosts" in await answer.text()
        admitted = {"Host": host, "Authorization": "Bearer t"}
        async with site.http.get("/metrics", headers=admitted) as answer:
            assert answer.status == 200
