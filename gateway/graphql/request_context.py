"""The context of one GraphQL request: its database units, its visitor and its cookies.

A loader is a domain unit `async (tx, keys, …) -> mapping of values by key`. Fields that are
resolved together ask for one key each; the units then run once, with all keys, on one snapshot.

It is one module because units, lists, visitor and cookies of a request end together.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Concatenate, TypeVar

from aiohttp import web

from gateway.domain.accounts.networks import share_of
from gateway.domain.storefront.carts.rows import token_of_store
from gateway.domain.storefront.visitors.session_tokens import recognise
from gateway.domain.storefront.visitors.shopper import Shopper
from gateway.graphql.request_checks import (
    RELEASES,
    cookies_of,
    effective_version,
    must_be_allowed_by,
)
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.server.app_keys import DB, DIRECTORY, REQUEST_ID
from gateway.server.http.client_address import CLIENT
from gateway.server.http.rate_limits import LIMITS
from gateway.server.storefront import STOREFRONT, Storefront
from outbox.database.transaction import Commits, P, T, Tx, belongs_to, commits

V = TypeVar("V")
Unit = Callable[..., Awaitable[Mapping[str, V]]]
_Batch = tuple[Unit[Any], tuple[str, ...], tuple[Hashable, ...]]
PART = 100
"""What one request completes in a turn of the event loop: objects of lists, and fields that get
what was loaded for them."""
TICKS = 3
"""Turns of the event loop to wait for more keys: fields of one level resume a few turns apart."""


class Loaders:
    """The loads of one request; `read` runs a unit on a snapshot."""

    def __init__(self, read: Callable[..., Awaitable[Any]]) -> None:
        self._read = read
        self._known: dict[Hashable, asyncio.Future[Any]] = {}
        self._batches: dict[Hashable, tuple[Unit[Any], tuple[Hashable, ...], list[str]]] = {}
        self._running: set[asyncio.Task[None]] = set()

    def load(self, unit: Unit[V], key: str, *args: Hashable) -> "asyncio.Future[V | None]":
        """Return the value of `key` in the mapping of `unit(tx, keys, *args)`; None when absent."""
        known = self._known.get((unit, args, key))
        if known is not None:
            return known
        loop = asyncio.get_running_loop()
        future: asyncio.Future[V | None] = loop.create_future()
        self._known[unit, args, key] = future
        if not self._batches:
            loop.call_soon(self._wait, TICKS)
        self._batches.setdefault((unit, args), (unit, args, []))[2].append(key)
        return future

    def forget(self) -> None:
        """Read everything anew from now on, because the request has written."""
        self._known.clear()

    def _wait(self, ticks: int) -> None:
        if ticks:
            asyncio.get_running_loop().call_soon(self._wait, ticks - 1)
            return
        task = asyncio.get_running_loop().create_task(self._run())
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self) -> None:
        batches = [*self._batches.values()]
        self._batches = {}
        futures = [[self._known[unit, args, key] for key in keys] for unit, args, keys in batches]
        units = [(unit, tuple(keys), args) for unit, args, keys in batches]
        results: Sequence[Any]
        try:
            results = await self._read(_together, units)
        except Exception as error:  # noqa: BLE001 - each field that waits raises it
            results = [error] * len(units)
        for (_, keys, _), theirs, values in zip(units, futures, results, strict=True):
            for number, (key, future) in enumerate(zip(keys, theirs, strict=True), 1):
                _settle(future, values, key)
                if not number % PART:
                    # Each of these fields now completes its objects.
                    await asyncio.sleep(0)


def _settle(future: "asyncio.Future[Any]", values: Any, key: str) -> None:
    # The request may have ended meanwhile.
    if future.done():
        return
    if isinstance(values, Exception):
        future.set_exception(values)
    else:
        future.set_result(values.get(key))


async def _together(tx: Tx, batches: Sequence[_Batch]) -> list[Any]:
    """Return the mapping of each batch, or its refusal."""
    results: list[Any] = []
    for unit, keys, args in batches:
        try:
            results.append(await unit(tx, keys, *args))
        except Refusal as refusal:
            results.append(refusal)
    return results


class Pace:
    """The objects that an operation may complete in this turn, and the lists that wait.

    The library completes a list in one synchronous call, with all lists inside of it. So the lists
    beyond PART objects wait here, and go on in the order in which they came.
    """

    def __init__(self, goes_on: Callable[[int], Awaitable[None]]) -> None:
        """`goes_on` is awaited before each further turn, with the values completed so far."""
        self.values = 0
        """Values of fields in the response so far."""
        self._goes_on = goes_on
        self._left = PART
        self._waiting: deque[tuple[asyncio.Future[None], int]] = deque()
        self._giving: asyncio.Task[None] | None = None
        self._ended = False

    def take(self, objects: int) -> bool:
        """Return whether a list of so many objects may be completed now."""
        # While lists wait, only those of them go on that get a turn.
        if objects and (objects > self._left or self._giving is not None):
            return False
        self._left -= objects
        return True

    async def wait(self, objects: int) -> None:
        """Wait for a turn with so many objects, at most PART."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._ended:
            turn.cancel()
        else:
            self._waiting.append((turn, objects))
            if self._giving is None:
                self._giving = asyncio.create_task(self._give())
        await turn

    async def end(self) -> None:
        """End what still waits, because the operation has ended."""
        self._ended = True
        for turn, _ in self._waiting:
            turn.cancel()
        if self._giving is not None:
            self._giving.cancel()
            await asyncio.gather(self._giving, return_exceptions=True)

    async def _give(self) -> None:
        """Give turns until no list waits and the last ones that got a turn are completed."""
        given = PART
        while given or self._waiting:
            await self._goes_on(self.values)
            given = self._give_turns()
            # The lists are completed in the next turn, in which further ones may begin to wait.
            await asyncio.sleep(0)
        self._left, self._giving = PART, None

    def _give_turns(self) -> int:
        """Let the first lists go on, together with at most PART objects; return how many."""
        given = 0
        while self._waiting and given + self._waiting[0][1] <= PART:
            turn, objects = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                given += objects
        return given


FAULTY = frozenset(
    {
        "validation_error", "invalid_reference", "password_too_short", "store_not_found",
        "origin_not_allowed", "discount_modal_not_found",
    }
)  # fmt: skip
"""Refusals of a form that reveal nothing about anybody and store nothing."""


class RequestContext:
    """One request. Resolvers get it as `info.context`."""

    def __init__(self, request: web.Request) -> None:
        self.request = request
        self.request_id = request[REQUEST_ID]
        self.version = effective_version(request.headers)
        """The date of the behaviour that the request selects; see RELEASES."""
        self.cookies = cookies_of(request)
        self._db = request.app[DB]
        self._visitors: dict[str, Shopper] = {}
        self.loaders = Loaders(self._db.read)
        """Loads what the fields of many objects need, together."""
        self.commits: dict[str | int, Commits] = {}
        """The commits of each mutation, by its key in the response."""
        self._pace: asyncio.Lock | None = None
        self.wrote = False
        """Whether a write has begun, however it ended."""

    @property
    def now(self) -> int:
        """Microseconds UTC."""
        return self._db.clock.wall()

    def token(self, size: int = 32) -> bytes:
        """Return random bytes."""
        return self._db.ids.token(size)

    def since(self, release: str) -> bool:
        """Return whether the request selects the changes of a release (RELEASES)."""
        assert release in RELEASES, f"{release} is not in RELEASES"
        return self.version >= release

    async def read(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a unit on a snapshot."""
        result = await self._db.read(unit, *args, **kwargs)
        await self.give_way()
        return result

    async def write(
        self, unit: Callable[Concatenate[Tx, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a unit in a transaction."""
        await self.begin_write()
        return await self._db.write(unit, *args, **kwargs)

    async def begin_write(self) -> None:
        """Note that a write begins, and write first what the visitor's looks mean."""
        self.wrote = True
        looks = self.storefront.looks
        if looks.waiting:
            for visitor in self._visitors.values():
                await looks.settle(visitor)

    def begin_mutation(self, key: str | int) -> None:
        """Note the commits from here on as those of the mutation with this key."""
        noted = self.commits[key] = Commits()
        commits.set(noted)

    async def search(
        self,
        unit: Callable[Concatenate[Tx, P], Awaitable[tuple[T, int]]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a long read, which returns its result and the rows that it looked at.

        The client's address pays for the rows. Raises rate_limited.
        """
        result = await self.storefront.searches.run(self.address, unit, *args, **kwargs)
        await self.give_way()
        return result

    def in_parts(self) -> None:
        """Let the event loop serve others between the lists of this request, which are large."""
        self._pace = asyncio.Lock()

    @property
    def paced(self) -> bool:
        """Whether the lists of this request are large."""
        return self._pace is not None

    async def give_way(self) -> None:
        if self._pace is not None:
            async with self._pace:
                # Several lists read at once would be completed in one turn of the loop.
                await asyncio.sleep(0)

    @property
    def address(self) -> str:
        """The address of the client."""
        return self.request[CLIENT].address

    @property
    def storefront(self) -> Storefront:
        """The parts that serve customers."""
        return self.request.app[STOREFRONT]

    async def visitor(self, hostname: str, *, strict: bool = True) -> Shopper:
        """Return the visitor of the store with this hostname.

        Raises store_not_found, origin_not_allowed for a page that is not one of the store's, and
        invalid_token for an Authorization header without a live session
        of the store, unless not `strict`. A cookie without one is no error: browsers keep cookies.
        """
        visitor = self._visitors.get(hostname)
        if visitor is None:
            store, zone = await self.request.app[DIRECTORY].find(hostname)
            await must_be_allowed_by(self.request, store)
            belongs_to(store.owner_id)
            cookies = self.cookies
            token = cookies.bearer or cookies.auth
            claim = None if token is None else self.storefront.tokens.read(token, self.now)
            visitor = Shopper(
                store=store, zone=zone, cart_token=token_of_store(store.id, cookies.carts),
                address=share_of(self.address), networks=self.storefront.networks.of(self.address),
                carts_per_day=self.storefront.carts_per_day,
            )  # fmt: skip
            if claim is not None:
                visitor = await self._db.read(recognise, visitor, claim)
            self._visitors[hostname] = visitor
        if strict and self.cookies.bearer is not None and visitor.customer_id is None:
            raise Refusal(
                "invalid_token",
                "The token in the Authorization header is not valid in this store; "
                "sign in again, or send no header.",
            )
        return visitor

    async def shopper(self, hostname: str) -> Shopper:
        """Return the visitor of the store, who may have a cart: a new one gets a token."""
        visitor = await self.visitor(hostname)
        if visitor.customer_id is None and visitor.cart_token is None:
            visitor = replace(visitor, cart_token=self.cart_token(visitor.store))
            self.keep_cart(visitor)
            self.become(hostname, visitor)
        return visitor

    def keep_cart(self, visitor: Shopper) -> None:
        """Prolong the life of the cookie with the visitor's cart."""
        self.cookies.set_cart(visitor.cart_token, visitor.store["cookie_same_site"])

    @property
    def stores(self) -> list[Record]:
        """The stores that the request has asked for."""
        return [visitor.store for visitor in self._visitors.values()]

    def cart_token(self, store: Record) -> str:
        """Return a new token for a cart in a store."""
        return self.storefront.carts.new(store.id, store.owner_id)

    @contextmanager
    def form(self) -> Iterator[None]:
        """Count the public form that the block saves; one with faulty values does not count.

        Raises rate_limited.
        """
        limits, share = self.request.app[LIMITS], share_of(self.address)
        limits.count("form", share)
        try:
            yield
        except Refusal as refusal:
            if refusal.code in FAULTY:
                limits.take_back("form", share)
            raise

    def become(self, hostname: str, visitor: Shopper) -> None:
        """Continue the request as another visitor, after a sign-in or a sign-out."""
        self._visitors = {
            name: other
            for name, other in self._visitors.items()
            if other.store.id != visitor.store.id
        }
        self._visitors[hostname] = visitor


Args = dict[str, Any]
Resolver = Callable[[RequestContext, Args], Awaitable[Any]]
"""The resolver of a query or mutation: (visit, arguments) → value. A mutation gets its input."""
FieldResolver = Callable[[Any, RequestContext, Args], Any]
"""The resolver of a field of another type: (object, visit, arguments) → value or awaitable."""
