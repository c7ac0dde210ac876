"""Reads the events feed over HTTP without an end; survives restarts of the server."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import aiohttp
import msgspec
from msgspec import Struct

from gateway.cli import tables
from outbox.errors import OutboxError
from outbox.ids import Ids

POLL_SECONDS = 0.5
PAGE = 100
TIMEOUT = aiohttp.ClientTimeout(total=30, connect=5)
FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 30.0
LONGEST_WAIT = 300.0
FINAL = frozenset({400, 401, 403, 404})
"""Responses that repeating the request cannot change."""
NO_EVENT = "none"
"""A type that no event has: the response then has the newest place and no events."""


class FeedRefused(OutboxError):
    """The server refuses this key, place or address; the text is for a person."""


class _Passing(Exception):
    """The feed cannot be read now; `wait` is what the server asked for, in seconds."""

    def __init__(self, text: str, wait: float = 0.0) -> None:
        super().__init__(text)
        self.wait = wait


class Entry(Struct, frozen=True, rename="camel"):
    """One event of the feed; `body` is null after the erasure of a person."""

    id: str
    event: str
    record_id: str
    record_version: int
    body: str | None


class Page(Struct, frozen=True, rename="camel"):
    """A page of the feed."""

    data: list[Entry]
    has_more: bool
    next_cursor: str = ""


class Fault(Struct, frozen=True):
    """The body of a refusal."""

    error: str = ""


@dataclass(frozen=True, slots=True)
class Address:
    """The feed to read: the server, the key, and the wanted events (empty: all)."""

    server: str
    key: str
    types: str = ""


class Source:
    """The events of one account from a place on. `say` gets a line for each change of state."""

    def __init__(
        self, http: aiohttp.ClientSession, address: Address, ids: Ids, say: Callable[[str], None]
    ) -> None:
        self._http = http
        self._address = address
        self._ids = ids
        self._say = say
        self._failures = 0

    async def newest(self) -> str:
        """Return the place after the newest event; empty when there is none."""
        return (await self._page("", types=NO_EVENT)).next_cursor

    async def events(self, place: str) -> AsyncIterator[tuple[Entry | None, str]]:
        """Return each event behind `place` with its own place, for ever.

        Without an event there is only a new place. Raise FeedRefused.
        """
        while True:
            page = await self._page(place, types=self._address.types)
            for entry in page.data:
                place = entry.id
                yield entry, place
            if page.next_cursor and page.next_cursor != place:
                place = page.next_cursor
                yield None, place
            if not page.has_more:
                await asyncio.sleep(POLL_SECONDS)

    async def _page(self, place: str, *, types: str) -> Page:
        """Return one page, however long the server is away. Raise FeedRefused."""
        while True:
            try:
                page = await self._ask(place, types)
            except _Passing as fault:
                await self._pause(fault)
                continue
            if self._failures:
                self._say("The feed can be read again.")
                self._failures = 0
            return page

    async def _pause(self, fault: _Passing) -> None:
        self._failures += 1
        backoff = min(FIRST_BACKOFF * 2 ** (self._failures - 1), LONGEST_BACKOFF)
        # Many listeners of one server do not return in the same moment.
        wait = max(fault.wait, backoff * (0.5 + self._ids.dice() / 2))
        self._say(f"The feed cannot be read: {fault}. Next try in {math.ceil(wait)} s.")
        await asyncio.sleep(wait)

    async def _ask(self, place: str, types: str) -> Page:
        query = {"limit": str(PAGE)}
        if place:
            query["after"] = place
        if types:
            query["types"] = types
        url = f"{self._address.server}/api/events"
        try:
            async with self._http.get(
                url, params=query, headers={"X-API-Key": self._address.key},
                allow_redirects=False, timeout=TIMEOUT,
            ) as answer:  # fmt: skip
                body = await answer.read()
                retry_after = answer.headers.get("Retry-After", "")
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            raise _Passing(f"{self._address.server} {_silence(error)}") from None
        except aiohttp.ClientError as error:
            raise _Passing(f"{self._address.server}: {type(error).__name__}") from None
        if answer.status == 200:
            return _page(body)
        if answer.status in FINAL or 300 <= answer.status < 400:
            raise FeedRefused(f"{url} answered {answer.status}{_reason(body)}")
        wait = float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0
        raise _Passing(f"{url} answered {answer.status}", min(wait, LONGEST_WAIT))


def _silence(error: Exception) -> str:
    """Say why a server gave no response."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        why = getattr(error.certificate_error, "verify_message", "") or "not valid"
        return f"has a certificate that is refused: {why}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "is a host name without an address"
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        return "does not speak TLS; is it plain http?"
    if isinstance(error, aiohttp.ClientConnectorError):
        return "accepts no connection"
    return "does not respond"


def _page(body: bytes) -> Page:
    try:
        return msgspec.json.decode(body, type=Page)
    except msgspec.MsgspecError:
        raise FeedRefused("the response is no page of events; is --server a Carteiro?") from None


def _reason(body: bytes) -> str:
    try:
        text = msgspec.json.decode(body, type=Fault).error
    except msgspec.MsgspecError:
        text = ""
    return f": {tables.inert(text)}" if text else "; is --server the address of a Carteiro?"
