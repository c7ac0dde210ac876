"""Answers on their way: large ones are written as the client reads, and count until they are sent.

What counts is taken from the budget of `[limits] answer_bytes` in the caller's name; an eighth of
it is the share of one caller. The connection gives it back (gateway.server.connections).
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Protocol

from aiohttp import web

from gateway.records.errors import Refusal
from gateway.server.budgets import Budget
from gateway.server.config import Limits
from gateway.server.keys import ANSWERS, CALLER
from outbox.errors import DatabaseUnavailable

PIECE = 65_536
SMALL = 16_384
"""Answers up to here do not count: a connection holds one at a time."""
FLOWING = 1_048_576
"""What an answer that is read from the database as it is written holds at a time, at most."""
SHARE = 8
BUILDING = 16
"""Lists that are put together at a time; one may come to megabytes before it is held."""


class Carrier(Protocol):
    """The connection that carries an answer."""

    left: int
    """Bytes of the answer that are not handed over yet."""

    def hold(self, holder: str, size: int) -> None:
        """Give so much back to the budget of answers when the answer is sent or given up."""


class Whole(web.Response):
    """An answer that is in memory already, handed over in pieces as the client reads."""

    def __init__(self, carrier: Carrier, made: web.Response, body: bytes) -> None:
        super().__init__(status=made.status, headers=made.headers, body=body)
        self.cookies.update(made.cookies)
        self._carrier = carrier
        self._bytes = body

    async def write_eof(self, data: bytes = b"") -> None:
        view = memoryview(self._bytes)
        place = 0
        while len(view) - place > PIECE:
            self._carrier.left = len(view) - place
            await self.write(view[place : place + PIECE])
            place += PIECE
        self._carrier.left = 0
        self.body = bytes(view[place:])
        await super().write_eof(data)


class Flow(web.StreamResponse):
    """An answer that is read from the database as the client reads it."""

    def __init__(self, pieces: AsyncGenerator[bytes, None], headers: Mapping[str, str]) -> None:
        super().__init__(headers=headers)
        self._pieces = pieces
        self._carrier: Carrier | None = None

    def carried_by(self, carrier: Carrier) -> None:
        """Tell who hands it over."""
        self._carrier = carrier

    async def write_eof(self, data: bytes = b"") -> None:
        async with aclosing(self._pieces) as pieces:
            # Nobody carries the answer to HEAD.
            if self._carrier is not None:
                # How much is still to come is not known; it is much.
                self._carrier.left = FLOWING
                await self._write(pieces)
                self._carrier.left = 0
        await super().write_eof(data)

    async def _write(self, pieces: AsyncGenerator[bytes, None]) -> None:
        try:
            async for piece in pieces:
                for place in range(0, len(piece), PIECE):
                    await self.write(piece[place : place + PIECE])
        except DatabaseUnavailable as fault:
            # The client learns of it by an answer that does not end.
            raise ConnectionError("the database went away in the middle of an answer") from fault


def budget(limits: Limits) -> Budget:
    """The budget of answers that are not sent yet."""
    return Budget(limits.answer_bytes, max(limits.answer_bytes // SHARE, FLOWING))


def must_have_room(request: web.Request, holder: str) -> None:
    """Raise unavailable when `holder` has too much on its way to be sent any more."""
    if request.app[ANSWERS].spent(holder):
        raise _full()


def carried(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """The response as it is sent, held in its caller's name. Raises unavailable.

    What was written is answered whatever is held. Answers to nobody known are the same bytes for
    all, or small, and so do not count.
    """
    if isinstance(response, Flow):
        size = FLOWING
    elif type(response) is web.Response and isinstance(response.body, bytes):
        size = len(response.body)
    else:
        return response
    if size <= SMALL or request.method == "HEAD":
        return response
    carrier: Carrier = request.protocol  # type: ignore[assignment] # ours are gateway.server.connections'
    if CALLER in request:
        holder = request[CALLER].owner_id
        safe = request.method == "GET" and request.path.startswith("/api/")
        if not request.app[ANSWERS].take(holder, size, must=not safe):
            raise _full()
        carrier.hold(holder, size)
    if isinstance(response, Flow):
        response.carried_by(carrier)
    elif size > PIECE and isinstance(response, web.Response) and isinstance(response.body, bytes):
        return Whole(carrier, response, response.body)
    return response


def _full() -> Refusal:
    return Refusal(
        "unavailable",
        "Too much was asked for and is not read yet; read these answers first, then ask again.",
        facts={"retry_after": 1},
    )
