"""GraphiQL, its files, and the text of the schema."""

from gateway.graphql.schema import sdl
from gateway.server.config import Config, Storefront
from outbox.database.transaction import Database
from tests.support.rest import RestApi
from tests.support.site import serving

HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


async def test_a_browser_gets_graphiql_and_a_program_does_not(api: RestApi) -> None:
    page = await api.nobody.get("/graphql", Accept=HTML)
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "script-src 'self';" in page.headers["Content-Security-Policy"]
    assert 'src="/graphql/assets/graphiql.min.js"' in page.text
    for accept in ("*/*", "application/json", "application/graphql-response+json, text/html;q=0.1"):
        answer = await api.nobody.get("/graphql?query={__typename}", Accept=accept)
        assert answer.body == {"data": {"__typename": "Query"}}


async def test_every_file_of_the_page_is_here(api: RestApi) -> None:
    page = await api.nobody.get("/graphql", Accept=HTML)
    names = [part.partition('"')[0] for part in page.text.split('"/graphql/assets/')[1:]]
    assert len(names) == 6
    for name in names:
        assert (await api.nobody.get(f"/graphql/assets/{name}")).status == 200
    missing = await api.nobody.get("/graphql/assets/none.js")
    assert (missing.status, missing.body["errors"][0]["extensions"]["code"]) == (404, "NOT_FOUND")


async def test_graphiql_can_be_switched_off(db: Database) -> None:
    async with serving(db, Config(storefront=Storefront(graphiql=False))) as site:
        http = RestApi(site).nobody
        assert (await http.get("/graphql", Accept=HTML)).status == 400
        assert (await http.get("/graphql/assets/graphiql.js")).status == 404


async def test_the_schema_is_published(api: RestApi) -> None:
    answer = await api.nobody.get("/graphql/schema.graphql")
    assert answer.status == 200
    assert answer.text == sdl()
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    again = await api.nobody.get("/graphql/schema.graphql", If_None_Match=answer.headers["ETag"])
    assert again.status == 304
