"""Which web pages may call the storefront: CSRF and CORS."""

from typing import Any

import pytest

from gateway.server.config import Config, Limits, Server
from outbox.database.transaction import Database
from tests.support.rest import Reply
from tests.support.shop import Shop, open_shop, opened
from tests.support.tables import in_turn

PAGE = "https://pages.example"
BODY = {"query": 'query Q { store(hostname: "shop.example") { name } }'}
TYPENAME = {"query": "{ __typename }"}
ALLOW = "Access-Control-Allow-Origin"


async def ask(shop: Shop, body: Any = BODY, **headers: str) -> Reply:
    return await shop.api.nobody.post("/graphql", body, **headers)


def code(reply: Reply) -> str:
    errors = reply.body.get("errors")
    return str(errors[0]["extensions"]["code"]) if errors else ""


async def allow(shop: Shop, *origins: str) -> None:
    changed = await shop.owner.put(
        f"/api/stores/{shop.store['id']}", {"allowedOrigins": list(origins)}
    )
    assert changed.status == 200, changed.body


@in_turn(
    "origin",
    [
        "", "https://evil.example", "null", "https://pages.example.evil.example", "http://pages.example",
        "https://evilpages.example", "https://pages.example:8443", "https://sub.pages.example",
        "https://pages.example@evil.example", "https://pages.example evil", "pages.example", "*",
        "https://évil.example", "file://", "https://pages.example%00.evil.example",
    ],
)  # fmt: skip
async def test_any_other_origin_is_refused(shop: Shop, origin: str) -> None:
    await allow(shop, PAGE)
    for accept in ("application/json", "application/graphql-response+json"):
        answer = await ask(shop, TYPENAME, Origin=origin, Accept=accept)
        assert (answer.status, code(answer)) == (403, "ORIGIN_NOT_ALLOWED")
        assert ALLOW not in answer.headers
        assert answer.headers["Vary"] == "Origin"
    got = await shop.api.nobody.get("/graphql?query={__typename}", Origin=origin)
    assert got.status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site"])
async def test_a_page_elsewhere_without_origin_is_refused(shop: Shop, site: str) -> None:
    answer = await ask(shop, TYPENAME, Sec_Fetch_Site=site)
    assert (answer.status, code(answer)) == (403, "ORIGIN_NOT_ALLOWED")
    await allow(shop, PAGE)
    assert (await ask(shop, TYPENAME, Sec_Fetch_Site=site, Origin=PAGE)).status == 200
    for same in ("same-origin", "none"):
        assert (await ask(shop, TYPENAME, Sec_Fetch_Site=same)).status == 200


async def test_the_hostnames_of_a_store_are_its_own_pages(shop: Shop) -> None:
    path = f"/api/stores/{shop.store['id']}"
    assert (await shop.owner.put(path, {"aliases": ["www.shop.example"]})).status == 200
    for origin in ("https://shop.example", "https://www.shop.example", "http://shop.example"):
        answer = await ask(shop, Origin=origin)
        assert (answer.status, code(answer)) == (200, ""), origin
        assert answer.headers[ALLOW] == origin
    # Behind https, a page of plain http is another site.
    refused = await ask(shop, Origin="http://shop.example", X_Forwarded_Proto="https")
    assert refused.status == 403


async def test_each_store_allows_its_own_origins_only(shop: Shop) -> None:
    await allow(shop, PAGE)
    other = await open_shop(
        shop.api, "other.example", allowedOrigins=["https://other-pages.example"]
    )
    for origin in ("https://other-pages.example", "https://other.example"):
        answer = await ask(shop, Origin=origin)
        assert (answer.status, code(answer)) == (200, "ORIGIN_NOT_ALLOWED")
        assert answer.body["data"] == {"store": None}
        message = answer.body["errors"][0]["message"]
        assert origin in message
        assert f"/api/stores/{shop.store['id']}" in message
        assert answer.headers[ALLOW] == origin
    await other.close()


async def test_this_server_is_an_own_page_unless_a_store_lives_there(shop: Shop) -> None:
    own = shop.api.site.url
    answer = await ask(shop, Origin=own)
    assert (answer.status, code(answer)) == (200, "")
    await open_shop(shop.api, "127.0.0.1")
    assert code(await ask(shop, Origin=own)) == "ORIGIN_NOT_ALLOWED"


async def test_a_change_of_origins_is_visible_at_once(shop: Shop) -> None:
    assert (await ask(shop, Origin=PAGE)).status == 403
    await allow(shop, PAGE)
    assert (await ask(shop, Origin=PAGE)).status == 200
    await allow(shop)
    assert (await ask(shop, Origin=PAGE)).status == 403
    assert code(await ask(shop)) == ""
    path = f"/api/stores/{shop.store['id']}"
    assert (await shop.owner.put(path, {"active": False})).status == 200
    assert code(await ask(shop)) == "STORE_NOT_FOUND"
    assert (await ask(shop, Origin="https://shop.example")).status == 403


# What browsers ask for on behalf of tracing, of clients and of pages.
ASKED = (
    "content-type,x-api-version", "baggage,sentry-trace", "traceparent,tracestate",
    "apollo-require-preflight,content-type", "apollographql-client-name",
    "apollographql-client-version", "x-apollo-operation-name", "x-requested-with",
    "cache-control,pragma", "authorization",
    "x-datadog-trace-id", "newrelic", "X-Amzn-Trace-Id, x-cart-session", "",
)  # fmt: skip


async def test_preflight(shop: Shop) -> None:
    await allow(shop, PAGE)
    shown = "Access-Control-Allow-Headers"

    async def asked(origin: str, names: str, **more: str) -> Reply:
        headers: dict[str, Any] = {
            "Access_Control_Request_Method": "POST",
            "Origin": origin,
            **more,
        }
        headers["Access_Control_Request_Headers"] = names
        return await shop.api.nobody.call("OPTIONS", "/graphql", **headers)

    for names in ASKED:
        allowed = await asked(PAGE, names)
        assert allowed.status == 204
        assert allowed.headers[ALLOW] == PAGE
        assert allowed.headers["Access-Control-Allow-Credentials"] == "true"
        assert allowed.headers["Access-Control-Allow-Methods"] == "GET, POST"
        assert allowed.headers["Access-Control-Max-Age"] == "600"
        assert allowed.headers["Vary"].startswith("Origin, Access-Control-Request-Headers")
        accepted = allowed.headers[shown].lower().split(", ")
        assert {*filter(None, names.lower().replace(" ", "").split(","))} <= {*accepted}
        assert "*" not in accepted
        assert len(accepted) == len({*accepted})
        assert "Access-Control-Allow-Private-Network" not in allowed.headers
    # All of the list, also unasked, and nothing that could end the header.
    odd = await asked(PAGE, "x y,é,<b>, ,x-ok,a:b," + "z" * 200)
    usual = {name for names in ASKED[:10] for name in names.split(",")}
    assert usual | {"x-ok"} <= {*odd.headers[shown].split(", ")}
    assert not {"x y", "é", "<b>", "", "a:b", "z" * 200} & {*odd.headers[shown].split(", ")}
    many = await asked(PAGE, ",".join(f"x-{n}" for n in range(300)))
    assert len(many.headers[shown]) < 1_500
    # A public page may call a server on a private network if its store allows the page.
    private = {"Access_Control_Request_Private_Network": "true"}
    found = await asked(PAGE, "", **private)
    assert found.headers["Access-Control-Allow-Private-Network"] == "true"
    for origin in ("https://evil.example", "null"):
        refused = await asked(origin, "traceparent", **private)
        assert (refused.status, refused.headers.get(ALLOW)) == (403, None)
        assert "Access-Control-Allow-Private-Network" not in refused.headers
    plain = await shop.api.nobody.call("OPTIONS", "/graphql")
    assert (plain.status, plain.headers["Allow"]) == (204, "GET, HEAD, OPTIONS, POST")


async def test_hostnames_are_folded_as_browsers_do(shop: Shop) -> None:
    """The page says `faß.example`, its browser says `xn--fa-hia.example`; `fass` is another."""
    path = f"/api/stores/{shop.store['id']}"
    body = {
        "hostname": "faß.example",
        "allowedOrigins": ["https://نامه‌ای.com", "https://日本。jp:443"],
    }
    changed = await shop.owner.put(path, body)
    assert changed.body["hostname"] == "xn--fa-hia.example"
    origins = ["https://xn--mgba3gch31f060k.com", "https://xn--wgv71a.jp"]
    assert changed.body["allowedOrigins"] == origins
    for hostname in (
        "faß.example",
        "FAẞ.example.",
        "xn--fa-hia.example:443",
        " XN--FA-HIA.example",
    ):
        for origin in ("https://xn--fa-hia.example", "https://faß.example", *origins):
            document = {"query": f'{{ store(hostname: "{hostname}") {{ name }} }}'}
            answer = await ask(shop, document, Origin=origin)
            assert (answer.status, code(answer)) == (200, ""), (hostname, origin)
    assert (await ask(shop, Origin="https://fass.example")).status == 403
    other = {"hostname": "fass.example", "name": "Other"}
    assert (await shop.owner.post("/api/stores", other)).status == 201


async def test_a_refused_rate_has_the_headers_too(still: Database) -> None:
    async with opened(
        still, Config(limits=Limits(storefront_per_minute=1)), allowedOrigins=[PAGE]
    ) as shop:
        answers = [await ask(shop, TYPENAME, Origin=PAGE) for _ in range(2)]
        assert [answer.status for answer in answers] == [200, 429]
        assert answers[1].headers[ALLOW] == PAGE


async def test_forwarding_headers_count_only_from_trusted_proxies(db: Database) -> None:
    config = Config(server=Server(trusted_proxies=("10.0.0.0/8",)))
    async with opened(db, config) as shop:
        forged = await ask(
            shop, Origin="https://evil.example", X_Forwarded_Host="evil.example",
            X_Forwarded_Proto="https", X_Forwarded_For="1.2.3.4",
        )  # fmt: skip
        assert forged.status == 403
