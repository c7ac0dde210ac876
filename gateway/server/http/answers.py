"""Sends responses: a small one in one write, a large one at the speed of the client.

The memory of unsent responses has a limit. aiohttp prepares each response for compression, chunks,
cookies and signals first; `send` leaves that out for a whole and plain one: without it a read of
one contact takes 1.06 times the processor time. The bytes are the same, and the private attributes
of aiohttp's responses used here are all in this module.

The limit is `[limits] answer_bytes`, of which one account or address may use an eighth. Clients
without an account get none beyond half of it, so that they leave the rest to accounts. The
connection gives the bytes back when it has sent the response
(gateway.server.http.client_connections).
"""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Protocol

from aiohttp import HttpVersion11, web
from aiohttp.helpers import rfc822_formatted_time

from gateway.domain.accounts.networks import share_of
from gateway.records.errors import Refusal
from gateway.server.app_keys import CALLER
from gateway.server.config import Limits
from gateway.server.http.client_address import CLIENT
from outbox.errors import DatabaseUnavailable

PIECE = 65_536
SMALL = 16_384
"""Responses up to this size do not count: a connection has only one of them at a time."""
FLOWING = 1_048_576
"""The most memory, in bytes, of a response that is read from the database while it is sent."""
SHARE = 8


class Budget:
    """Bytes in use: at most `total` for all holders together and `share` for each."""

    def __init__(self, total: int, share: int) -> None:
        self.total = total
        self.share = share
        self.held = 0
        self._shares: Counter[str] = Counter()

    def take(self, holder: str, size: int, *, must: bool = False, total: int | None = None) -> bool:
        """Take `size` bytes if they are free; return whether they were. `must` always takes.

        `total` is a smaller one for this holder. A first response may be larger than a share, and
        the only one than all: nobody could ever read it otherwise.
        """
        most, of_holder = self.total if total is None else total, self._shares[holder]
        too_much = (self.held and self.held + size > most) or (
            of_holder and of_holder + size > self.share
        )
        if too_much and not must:
            return False
        self.held += size
        self._shares[holder] += size
        return True

    def give(self, holder: str, size: int) -> None:
        """Give back `size` bytes."""
        self.held -= size
        self._shares[holder] -= size
        if self._shares[holder] <= 0:
            del self._shares[holder]

    def spent(self, holder: str, total: int | None = None) -> bool:
        """Return whether `holder` has no bytes left, of a smaller `total` if there is one."""
        most = self.total if total is None else total
        return self.held >= most or self._shares.get(holder, 0) >= self.share


class Carrier(Protocol):
    """The connection that sends a response."""

    def hold(self, holder: str, size: int) -> None:
        """Give `size` bytes back to the budget when the response is sent or abandoned."""


class Whole(web.Response):
    """A response in memory that is written in pieces as the client reads."""

    def __init__(self, carrier: Carrier, response: web.Response, body: bytes) -> None:
        super().__init__(status=response.status, headers=response.headers, body=body)
        self.cookies.update(response.cookies)
        self._carrier = carrier
        self._bytes = body

    async def write_eof(self, data: bytes = b"") -> None:
        view = memoryview(self._bytes)
        place = 0
        while len(view) - place > PIECE:
            await self.write(view[place : place + PIECE])
            place += PIECE
        self.body = bytes(view[place:])
        await super().write_eof(data)


class Flow(web.StreamResponse):
    """A response that is read from the database as the client reads it."""

    def __init__(self, pieces: AsyncGenerator[bytes, None], headers: Mapping[str, str]) -> None:
        super().__init__(headers=headers)
        self.pieces = pieces
        self._carrier: Carrier | None = None

    def carried_by(self, carrier: Carrier) -> None:
        """Set the connection that sends the response."""
        self._carrier = carrier

    async def write_eof(self, data: bytes = b"") -> None:
        async with aclosing(self.pieces) as pieces:
            # A response to HEAD has no connection and no body.
            if self._carrier is not None:
                await self._write(pieces)
        await super().write_eof(data)

    async def _write(self, pieces: AsyncGenerator[bytes, None]) -> None:
        try:
            async for piece in pieces:
                for place in range(0, len(piece), PIECE):
                    await self.write(piece[place : place + PIECE])
        except DatabaseUnavailable as fault:
            # The client notices the error because the response is incomplete.
            raise ConnectionError("the database failed in the middle of a response") from fault


async def begun(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Return the pieces of a Flow once the first one is read: its error is the whole response."""
    return _from(await anext(pieces), pieces)


async def _from(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        yield first
        async for piece in rest:
            yield piece
    finally:
        await rest.aclose()


def budget(limits: Limits) -> Budget:
    """Return the budget for unsent responses."""
    return Budget(limits.answer_bytes, max(limits.answer_bytes // SHARE, FLOWING))


def must_have_room(request: web.Request, holder: str) -> None:
    """Raise unavailable when the unsent responses of `holder` use its whole share."""
    if request.app[ANSWERS].spent(holder):
        raise _full()


def visitor_must_have_room(request: web.Request) -> None:
    """Raise unavailable when there is no room for unsent responses to a client without account."""
    budget = request.app[ANSWERS]
    if budget.spent(share_of(request[CLIENT].address), budget.total // 2):
        raise _full()


def carried(
    request: web.Request, response: web.StreamResponse, *, must: bool = False
) -> web.StreamResponse:
    """Return the response to send, counted in the budget of its caller. Raise unavailable.

    The response to a write is sent even if the budget is used up, and any that `must` be.
    """
    if isinstance(response, Flow):
        size = FLOWING
    elif type(response) is web.Response and isinstance(response.body, bytes):
        size = len(response.body)
    else:
        return response
    if size <= SMALL or request.method == "HEAD":
        return response
    carrier: Carrier = request.protocol  # type: ignore[assignment] # ours are gateway.server.http.client_connections'
    budget = request.app[ANSWERS]
    must = must or request.method != "GET"
    if CALLER in request:
        holder, total = request[CALLER].owner_id, budget.total
        must = must or not request.path.startswith("/api/")
    else:
        holder, total = share_of(request[CLIENT].address), budget.total // 2
    if not budget.take(holder, size, must=must, total=total):
        raise _full()
    carrier.hold(holder, size)
    if isinstance(response, Flow):
        response.carried_by(carrier)
    elif size > PIECE and isinstance(response, web.Response) and isinstance(response.body, bytes):
        return Whole(carrier, response, response.body)
    return response


async def send(request: web.BaseRequest, response: web.StreamResponse) -> bool:
    """Send the response if it is whole and plain; return whether it was. Raise ConnectionError.

    The response has its header Server.
    """
    if type(response) is not web.Response:
        return False
    body, headers, status = response.body, response.headers, response.status
    if (
        not isinstance(body, bytes)
        or request.version != HttpVersion11
        or request.method == "HEAD"
        # The statuses without a body.
        or status in (204, 304)
        or status < 200
        or response.prepared
        or response.chunked
        or response.compression
        or response._cookies
        or "Content-Length" in headers
        or "Connection" in headers
    ):
        return False
    headers["Content-Length"] = str(len(body))
    if body:
        headers.setdefault("Content-Type", "application/octet-stream")
    if "Date" not in headers:
        headers["Date"] = rfc822_formatted_time()
    if response.keep_alive is None:
        response._keep_alive = request.keep_alive
    if not response.keep_alive:
        headers["Connection"] = "close"
    writer = response._payload_writer = request.writer
    await writer.write_headers(f"HTTP/1.1 {status} {response.reason}", headers)
    await writer.write_eof(body)
    response._eof_sent = True
    return True


def _full() -> Refusal:
    return Refusal(
        "unavailable",
        "Too many responses are unread; read them, then send the request again.",
        facts={"retry_after": 1},
    )


ANSWERS = web.AppKey("ANSWERS", Budget)
