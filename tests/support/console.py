"""A console client without a browser: keeps cookies, follows redirects, fills in forms."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import urljoin

import aiohttp
from multidict import CIMultiDictProxy

from gateway.server.config import Config, Egress, Limits
from tests.support.site import PASSWORD, Site

TOKEN = re.compile('name="csrf_token" value="([0-9a-f]+)"')
CONFIG = Config(
    limits=Limits(sign_in_per_minute=0, read_per_second=0, write_per_second=0, pages_per_second=0),
    egress=Egress(allow_http=True, allow=("127.0.0.0/8",)),
)
"""No rate limits, and receivers on loopback."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A page as received, after redirects."""

    status: int
    path: str
    headers: CIMultiDictProxy[str]
    html: str

    @property
    def csrf(self) -> str:
        match = TOKEN.search(self.html)
        assert match, self.html
        return match[1]

    @property
    def id(self) -> str:
        """The last id in the page's path."""
        return str(re.findall("[0-9a-f]{24}", self.path)[-1])

    def link(self, words: str) -> str:
        """Return the path of the link with this text."""
        match = re.search(rf'<a [^>]*href="([^"]*)"[^>]*>{re.escape(words)}</a>', self.html)
        assert match, self.html
        return unescape(match[1])

    def test_id(self, name: str) -> str | None:
        """Return the text of the element with this data-testid."""
        match = re.search(rf'data-testid="{name}"[^>]*>([^<]*)', self.html)
        return unescape(match[1]) if match else None


class Forms:
    """A client with the cookies of one browser."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self.http = http

    async def get(self, path: str, *, follow: bool = True, **headers: str) -> Seen:
        return await self._ask("GET", path, None, follow, headers)

    async def post(
        self, path: str, fields: Sequence[tuple[str, str]] = (), *, follow: bool = True,
        **headers: str,
    ) -> Seen:  # fmt: skip
        """Send fields unchanged."""
        return await self._ask("POST", path, list(fields), follow, headers)

    async def submit(
        self, path: str, *, at: str | None = None, follow: bool = True, **fields: Any
    ) -> Seen:
        """Open the page `at`, then send its form's token with `fields` (lists repeat) to `path`."""
        page = await self.get(at or path)
        pairs = [("csrf_token", page.csrf)]
        for name, value in fields.items():
            pairs += [(name, each) for each in (value if isinstance(value, list) else [value])]
        return await self.post(path, pairs, follow=follow)

    async def upload(
        self, path: str, data: bytes, *, token: str | None = None, follow: bool = True,
        fields: Sequence[tuple[str, str]] = (), **headers: str,
    ) -> Seen:  # fmt: skip
        """Open the page `path`, and send a file with its form, behind other `fields`."""
        csrf = (await self.get(path)).csrf if token is None else token
        form = aiohttp.FormData()
        form.add_field("csrf_token", csrf)
        for name, value in fields:
            form.add_field(name, value)
        form.add_field("file", data, filename="leads.csv", content_type="text/csv")
        return await self._ask("POST", path, form, follow, headers)

    async def sign_in(self, email: str = "maria@example.com", password: str = PASSWORD) -> Seen:
        return await self.submit("/console/sign-in", email=email, password=password)

    async def webhook(self, url: str, *events: str, **fields: Any) -> Seen:
        """Create a webhook through its form; return its page."""
        return await self.submit(
            "/console/webhooks", at="/console/webhooks/new", url=url,
            events=list(events or ("contact.created",)), **fields,
        )  # fmt: skip

    async def _ask(
        self, method: str, path: str, fields: Any, follow: bool, headers: dict[str, str]
    ) -> Seen:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for _ in range(5):
            async with self.http.request(
                method, path, data=fields, headers=named, allow_redirects=False
            ) as answer:
                seen = Seen(
                    answer.status, path, answer.headers, await answer.text(errors="replace")
                )
            if not follow or seen.status not in (302, 303):
                return seen
            method, fields, path = "GET", None, urljoin(path, answer.headers["Location"])
        raise AssertionError(f"redirected in circles at {path}")


@asynccontextmanager
async def signed_in(address: str, email: str, password: str = PASSWORD) -> AsyncIterator[Forms]:
    """Sign somebody in to the console of a server at `address`."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(address, cookie_jar=jar) as http:
        forms = Forms(http)
        await forms.sign_in(email, password)
        yield forms


class Guest(Forms):
    """The same at a site of this process."""

    def __init__(self, site: Site, http: aiohttp.ClientSession) -> None:
        super().__init__(http)
        self.site = site


@asynccontextmanager
async def guest(site: Site) -> AsyncIterator[Guest]:
    """Return a new browser without cookies."""
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(site.url, cookie_jar=jar) as http:
        yield Guest(site, http)
