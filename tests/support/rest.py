"""Callers of the REST API over loopback."""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from multidict import CIMultiDictProxy

from gateway.domain.accounts import users
from gateway.server.app_keys import CREDENTIALS
from gateway.server.config import Config, Limits
from outbox.database.transaction import Row, Tx
from tests.support.site import Site

VISITOR_LIMITS: Mapping[str, int] = dict.fromkeys(
    (
        "storefront_per_minute", "forms_per_minute", "checkouts_per_minute", "checkouts_per_hour",
        "unpaid_orders_per_email", "unpaid_orders_per_address", "reserved_percent",
        "carts_per_day", "searched_rows_per_minute", "password_tries",
    ),
    0,
)  # fmt: skip
"""The limits of visitors, switched off, by their keys in [limits]."""
UNLIMITED = Config(
    limits=Limits(read_per_second=0, write_per_second=0, sign_in_per_minute=0, **VISITOR_LIMITS)
)


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete response; `body` is None when there was none."""

    status: int
    headers: CIMultiDictProxy[str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text) if self.text else None

    @property
    def faults(self) -> dict[str, str]:
        """Map field → code of an error's details."""
        return {d["field"]: d["code"] for d in self.body.get("details", ())}


class Person:
    """A caller of the API, with a credential or without."""

    def __init__(self, http: aiohttp.ClientSession, user_id: str, headers: Mapping[str, str]):
        self._http = http
        self.user_id = user_id
        self.headers = dict(headers)

    async def call(
        self, method: str, path: str, body: Any = None, *, data: bytes | None = None, **headers: Any
    ) -> Reply:
        """Send one request; `body` goes as JSON, `data` unchanged. Header names use `_` for `-`."""
        sent = self.headers | {name.replace("_", "-"): text for name, text in headers.items()}
        if body is not None:
            data = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        # The client warns about large bodies that are not files.
        stream = io.BytesIO(data) if data else None
        async with self._http.request(
            method, path, data=stream, headers=sent, allow_redirects=False,
            skip_auto_headers=("Content-Type",),
        ) as response:  # fmt: skip
            return Reply(response.status, response.headers, await response.text())

    async def get(self, path: str, **headers: Any) -> Reply:
        return await self.call("GET", path, **headers)

    async def post(self, path: str, body: Any = None, **headers: Any) -> Reply:
        return await self.call("POST", path, body, **headers)

    async def put(self, path: str, body: Any = None, **headers: Any) -> Reply:
        return await self.call("PUT", path, body, **headers)

    async def delete(self, path: str, **headers: Any) -> Reply:
        return await self.call("DELETE", path, **headers)


class RestApi:
    """The REST API and its callers."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.db = site.db
        self.nobody = Person(site.http, "", {})
        self._people = 0

    async def person(self, scopes: Sequence[str] = ("read", "write")) -> Person:
        """Create a user with an API key of these scopes."""
        self._people += 1
        user_id = await self.db.write(
            users.add, email=f"p{self._people}@example.com", name="Person", password_hash="-"
        )
        return await self.key_of(user_id, scopes)

    async def events(self) -> list[tuple[str, dict[str, Any]]]:
        """Return (name, data) of every event so far, as receivers get them."""
        rows = await self.db.read(_events)
        return [(row["name"], json.loads(bytes(row["body"]))["data"]) for row in rows]

    async def move(self, who: Person, zone: str) -> None:
        """Set a user's time zone."""

        async def unit(tx: Tx) -> None:
            await tx.run("update users set timezone = $2 where id = $1", who.user_id, zone)

        await self.db.write(unit)
        self.site.app[CREDENTIALS].forget()

    async def key_of(self, user_id: str, scopes: Sequence[str] = ("read", "write")) -> Person:
        """Return the user with another key."""
        key = await self.site.key(user_id, scopes)
        return Person(self.site.http, user_id, {"X-API-Key": key})


async def _events(tx: Tx) -> list[Row]:
    return await tx.all("select name, body from events order by pos")
