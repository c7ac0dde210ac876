"""A store and its visitors, over loopback with cookies."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from multidict import CIMultiDictProxy

from gateway.server.config import Config
from outbox.database.transaction import Database
from tests.support.rest import UNLIMITED, Person, RestApi
from tests.support.site import serving


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete GraphQL response."""

    status: int
    headers: CIMultiDictProxy[str]
    body: Any

    @property
    def data(self) -> Any:
        """The data; fails when there are errors."""
        assert "errors" not in self.body, self.body
        return self.body["data"]

    @property
    def error(self) -> dict[str, Any]:
        """The only error."""
        [error] = self.body["errors"]
        found: dict[str, Any] = error
        return found

    @property
    def code(self) -> str:
        """The code of the only error."""
        return str(self.error["extensions"]["code"])

    @property
    def cookies(self) -> dict[str, str]:
        """Map the name of each set cookie to its whole header."""
        lines = self.headers.getall("Set-Cookie", ())
        return {line.partition("=")[0]: line for line in lines}


class Browser:
    """A visitor of a store; it keeps cookies."""

    def __init__(self, url: str, hostname: str) -> None:
        self.hostname = hostname
        self.http = aiohttp.ClientSession(url, cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def send(
        self, query: str, variables: Mapping[str, Any] | None = None, **headers: str
    ) -> Answer:
        """Send a document. Header names use `_` for `-`."""
        sent = {name.replace("_", "-"): text for name, text in headers.items()}
        body = {"query": query, "variables": dict(variables or {})}
        async with self.http.post("/graphql", json=body, headers=sent) as response:
            return Answer(response.status, response.headers, await response.json())

    async def ask(self, selection: str, **variables: Any) -> Any:
        """Return one field of a query; `hostname: $h` names the store in the selection."""
        query = f"query ($h: String!) {{ {selection} }}"
        return (await self.send(query, {"h": self.hostname, **variables})).data

    async def do(self, mutation: str, selection: str, **values: Any) -> Answer:
        """Run a mutation with these values of its input."""
        kind = mutation[0].upper() + mutation[1:]
        query = (
            f"mutation ($input: {kind}MutationInput!)"
            f" {{ {mutation}(input: $input) {{ {selection} }} }}"
        )
        return await self.send(query, {"input": {"hostname": self.hostname, **values}})

    async def close(self) -> None:
        await self.http.close()


class Shop:
    """A store of an owner, who calls the REST API."""

    def __init__(self, api: RestApi, owner: Person, store: Mapping[str, Any]) -> None:
        self.api = api
        self.db = api.db
        self.owner = owner
        self.store = store
        self._browsers: list[Browser] = []

    @property
    def hostname(self) -> str:
        return str(self.store["hostname"])

    def browser(self) -> Browser:
        """Return a new visitor."""
        made = Browser(self.api.site.url, self.hostname)
        self._browsers.append(made)
        return made

    async def close(self) -> None:
        for browser in self._browsers:
            await browser.close()


@asynccontextmanager
async def opened(db: Database, config: Config = UNLIMITED, **values: Any) -> AsyncIterator[Shop]:
    """Serve `db` with a store of these values until the block ends."""
    async with serving(db, config) as site:
        shop = await open_shop(RestApi(site), **values)
        try:
            yield shop
        finally:
            await shop.close()


async def open_shop(api: RestApi, hostname: str = "shop.example", **values: Any) -> Shop:
    """Create an owner with a store."""
    owner = await api.person()
    body = {"hostname": hostname, "name": "Coffee Shop", **values}
    made = await owner.post("/api/stores", body)
    assert made.status == 201, made.body
    return Shop(api, owner, made.body)
