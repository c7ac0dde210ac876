"""Writes what looks at carts mean, apart from the looks, which only read.

A look prolongs the life of a visitor's cart, and agrees to the total that it shows. Both wait in
memory for a second, and are written before the same visitor's next write in this process. Another
process may not know them yet, and a kill may lose them; then a checkout goes by the total that the
visitor agreed to before.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, NamedTuple

from gateway.domain.storefront.carts import rows
from gateway.domain.storefront.carts.rows import Cart
from gateway.domain.storefront.visitors.shopper import Shopper
from outbox.database.transaction import Database
from outbox.errors import DatabaseUnavailable

SECONDS = 1.0
MOST = 10_000
"""Most visitors whose looks wait; what further ones mean is not written."""

_Visitor = tuple[str, str]


class _Look(NamedTuple):
    cart_id: str
    touched_at: int
    """When the cart was changed that was shown."""
    used: bool
    total: int | None


class Looks:
    """The looks of one process that are not written yet."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._context: Context | None = None
        self.waiting: dict[_Visitor, _Look] = {}
        """What waits, by visitor."""
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Take the context of the server for the writes: they are no part of a request."""
        self._context = copy_context()

    def used(self, visitor: Shopper, cart: Cart) -> None:
        """Note that the visitor used the cart, which prolongs its life."""
        self._note(visitor, cart, used=True, total=None)

    def agreed(self, visitor: Shopper, cart: Cart) -> int:
        """Return the total of a cart that the visitor agreed to."""
        look = self.waiting.get(_key(visitor))
        # A cart that was changed since has another total.
        if look is None or (look.cart_id, look.touched_at) != (cart.id, cart.touched_at):
            return cart.shown_total
        return cart.shown_total if look.total is None else look.total

    def showed(self, visitor: Shopper, cart: Cart, total: int) -> None:
        """Note that the visitor sees this total of a cart."""
        self._note(visitor, cart, used=False, total=total)

    async def settle(self, visitor: Shopper) -> None:
        """Write what waits of one visitor."""
        look = self.waiting.pop(_key(visitor), None)
        if look is not None:
            await asyncio.shield(self._begun(self._write(look)))

    async def settle_all(self) -> None:
        """Write what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self._write_all()

    def _note(self, visitor: Shopper, cart: Cart, *, used: bool, total: int | None) -> None:
        key = _key(visitor)
        before = self.waiting.get(key)
        if before is None and len(self.waiting) >= MOST:
            return
        assert cart.id is not None, "only a stored cart is used"
        if before is not None and before.cart_id == cart.id:
            used = used or before.used
            total = before.total if total is None else total
        self.waiting[key] = _Look(cart.id, cart.touched_at, used, total)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SECONDS, self._due)

    def _due(self) -> None:
        self._timer = None
        self._begun(self._write_all())

    def _begun(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Return the task of a write: neither its time nor its COMMIT are a request's."""
        task = asyncio.get_running_loop().create_task(work, context=self._context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _write_all(self) -> None:
        while self.waiting:
            await self._write(self.waiting.pop(next(iter(self.waiting))))

    async def _write(self, look: _Look) -> None:
        with suppress(DatabaseUnavailable):
            await self._db.write(rows.look, look.cart_id, look.touched_at, look.used, look.total)


def _key(visitor: Shopper) -> _Visitor:
    return visitor.store.id, visitor.customer_id or visitor.cart_token or ""
