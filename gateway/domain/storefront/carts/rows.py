"""Stores carts: a row per cart, with its lines as JSON.

A customer's cart is found by the customer, a visitor's by the SHA-256 of the token, always within
one store. The first change creates the row.

The row knows the total that the visitor agreed to: `shown_total`, the one that a response showed
last, changed by what the visitor did since. When a response shows another one, because somebody
else changed the total, `looks` stores it. A change stores a lower one, which needs no agreement.

Each token belongs to one store. Stores may share a host, and so its cookies. A page of one store
must neither learn the token of a cart in another one nor choose it, so no store accepts a token
that was made for another.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from hashlib import sha256

from msgspec import Struct, json
from msgspec.structs import replace

from gateway.domain.cells.credential_suffix import bare, mark_of
from gateway.domain.sales import discounts
from gateway.domain.sales.discounts import Discount
from gateway.domain.storefront.carts import cart_quotas
from gateway.domain.storefront.visitors.shopper import Shopper, hold_customer, hold_store
from gateway.records.errors import Refusal
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY
from outbox.ids import Ids, digest_of

LIFETIME = 7 * DAY
"""How long the cart of a visitor lasts after its last use."""
BARE_LIFETIME = DAY
"""How long one without products lasts."""
TOUCH_EVERY = DAY
"""Reading a cart prolongs its life at most once in this time."""


class Line(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A line, with the price of its product when the cart was stored, in centavos."""

    id: str
    product_id: str
    quantity: int
    price: int
    ships: bool = True
    """Whether its product was shipped then."""


class Cart(Struct, frozen=True):
    """A cart. `id` is None while it has no row."""

    id: str | None = None
    new_id: str = ""
    """The id that its row gets."""
    lines: tuple[Line, ...] = ()
    coupon_id: str | None = None
    cep: str | None = None
    shipping_type: str | None = None
    shipping_price: int | None = None
    """The price of the chosen option when the cart was stored, in centavos."""
    touched_at: int = 0
    coupon: Discount | None = None
    """The current coupon of `coupon_id`; None when it was deleted."""
    unseen: int = 0
    """By how much the total at the stored prices differs from the shown one, in centavos."""

    @property
    def stored_total(self) -> int:
        """The total at the stored prices."""
        total = sum(line.price * line.quantity for line in self.lines)
        discount = 0 if self.coupon is None else self.coupon.of(total)
        ships = any(line.ships for line in self.lines)
        return total - discount + (self.shipping_price or 0 if ships else 0)

    @property
    def shown_total(self) -> int:
        """The total that the visitor saw last, with what the visitor changed since."""
        return max(0, self.stored_total - self.unseen)

    def with_shown(self, total: int) -> "Cart":
        """Return the cart of a visitor who saw this total."""
        return replace(self, unseen=self.stored_total - total)

    def stale(self, now: int) -> bool:
        """Return whether the next read of the cart prolongs its life."""
        return bool(self.lines) and now - self.touched_at > TOUCH_EVERY

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing that a visitor chose."""
        return not self.lines and self.coupon_id is None and self.cep is None


_COUPON = ", ".join(f"k.{name} as coupon_{name}" for name in discounts.COLUMNS)
_FIND = f"""
select c.id, c.state, c.lines, c.coupon_id as applied_id, c.cep, c.shipping_type,
  c.shipping_price, c.shown_total, c.touched_at, {_COUPON}
from carts c left join coupons k on k.id = c.coupon_id and k.store_id = c.store_id
where c.store_id = $1 and"""
# The active cart, else the one that ended last; indexed in exactly this spelling.
_LAST = "order by coalesce(c.ended_at, 9223372036854775807) desc limit 1"
_OF_CUSTOMER = f"{_FIND} c.customer_id = $2 {_LAST}"
_OF_VISITOR = f"{_FIND} c.digest = $2 and (c.state <> 'active' or c.expires_at > $3) {_LAST}"
_LOCK = " /*postgres for update of c*/"
_EXPIRED = "delete from carts where store_id = $1 and digest = $2 and expires_at <= $3"
_CREATE = """
insert into carts (id, owner_id, store_id, digest, customer_id, state, lines, created_at,
  touched_at, expires_at)
values ($1, $2, $3, $4, $5, 'active', '[]', $6, $6, $7) on conflict do nothing
"""
_SAVE = """
update carts set lines = $2, coupon_id = $3, cep = $4, shipping_type = $5, shipping_price = $6,
  shown_total = $7, touched_at = $8,
  expires_at = case when expires_at is null then null else cast($9 as bigint) end
where id = $1 and state = 'active'
"""
_EMPTIED = "delete from carts where id = $1 and state = 'active'"
_TOUCH = """
update carts set touched_at = $2, expires_at = $3 where id = $1 and expires_at > $2
"""
# Nothing for a cart that was changed since it was read: its total is another one by now.
_SHOW = "update carts set shown_total = $3 where id = $1 and state = 'active' and touched_at = $2"
# It stays for the id of the visitor's next cart, which needs no destination.
_END = """
update carts set state = $2, expires_at = null, ended_at = $3, order_id = $4, cep = null
where id = $1 and state = 'active'
"""


async def find(tx: Tx, visitor: Shopper, *, lock: bool = False) -> Cart:
    """Return the visitor's cart, an empty one without a row; `lock` holds it to the end."""
    locking = _LOCK if lock else ""
    row = None
    if visitor.customer_id is not None:
        row = await tx.one(_OF_CUSTOMER + locking, visitor.store.id, visitor.customer_id)
    elif visitor.cart_token is not None:
        of = digest_of(visitor.cart_token)
        row = await tx.one(_OF_VISITOR + locking, visitor.store.id, of, tx.now)
    if row is None or row["state"] != "active":
        return Cart(new_id=_new_id(visitor, None if row is None else row["id"]))
    return _cart(row)


def _new_id(visitor: Shopper, last: str | None) -> str:
    """Return the id of the visitor's next cart, after the cart `last`; the same at each look.

    A client that keeps objects by id then sees one cart change, not one replaced by another.
    """
    whose = visitor.customer_id or sha256((visitor.cart_token or "").encode()).hexdigest()
    after = "" if last is None else f" after {last}"
    return sha256(f"cart of {whose} in {visitor.store.id}{after}".encode()).hexdigest()[:24]


async def opened(tx: Tx, visitor: Shopper) -> Cart:
    """Return the visitor's cart, locked; make its row if it has none.

    Raises store_not_found or unauthenticated when the store or the account was deleted meanwhile,
    and rate_limited when the visitor's address began too many carts.
    """
    # The insert may wait for a cart that a checkout then ends; then try again. Where the clocks of
    # nodes differ, an ended cart may have the new id; then any other will do.
    for tried in range(3):
        cart = await find(tx, visitor, lock=True)
        if cart.id is not None:
            return cart
        await hold_store(tx, visitor)
        await hold_customer(tx, visitor)
        token = None if visitor.customer_id is not None else visitor.cart_token
        of = None if token is None else digest_of(token)
        if of is not None:
            await tx.run(_EXPIRED, visitor.store.id, of, tx.now)
        cart_id = tx.new_id() if tried else cart.new_id
        count = await tx.run(
            _CREATE, cart_id, visitor.store.owner_id, visitor.store.id, of,
            visitor.customer_id, tx.now, None if of is None else tx.now + LIFETIME,
        )  # fmt: skip
        if count and of is not None:
            # Not for a cart that another request of the visitor made first.
            await cart_quotas.take(tx, visitor)
    raise Refusal("conflict", "The cart is being ordered; try again.")


async def save(tx: Tx, cart: Cart) -> Cart:
    """Store a cart that is locked, and prolong its life; an empty one has no row.

    Return it as it is now.
    """
    if cart.is_empty:
        await tx.run(_EMPTIED, cart.id)
        return Cart(new_id=cart.id or cart.new_id)
    await tx.run(
        _SAVE, cart.id, json.encode(cart.lines).decode(), cart.coupon_id, cart.cep,
        cart.shipping_type, cart.shipping_price, cart.shown_total, tx.now,
        tx.now + (LIFETIME if cart.lines else BARE_LIFETIME),
    )  # fmt: skip
    return replace(cart, touched_at=tx.now)


async def look(tx: Tx, cart_id: str, touched_at: int, used: bool, total: int | None) -> None:
    """Store what a look at a cart means.

    The visitor saw this total, which is stored unless the cart changed since `touched_at`; and when
    it was `used`, its life is prolonged.
    """
    if total is not None:
        await tx.run(_SHOW, cart_id, touched_at, total)
    if used:
        await tx.run(_TOUCH, cart_id, tx.now, tx.now + LIFETIME)


async def close(tx: Tx, cart: Cart, order_id: str) -> None:
    """End a cart that was ordered; the visitor's next cart is empty.

    Raises cart_empty when another order ended it first.
    """
    if not await end(tx, cart.id, "ordered", order_id):
        raise Refusal("cart_empty", "The cart is empty: it has been ordered.")


async def end(tx: Tx, cart_id: str | None, state: str, order_id: str | None = None) -> int:
    """End an active cart; return 0 when it has ended already."""
    return await tx.run(_END, cart_id, state, tx.now, order_id)


def _cart(row: Row) -> Cart:
    coupon = None if row["coupon_id"] is None else discounts.of_row(row, "coupon_")
    cart = Cart(
        id=row["id"], lines=json.decode(row["lines"], type=tuple[Line, ...]),
        coupon_id=row["applied_id"], cep=row["cep"], shipping_type=row["shipping_type"],
        shipping_price=row["shipping_price"], touched_at=row["touched_at"], coupon=coupon,
    )  # fmt: skip
    # A cart from before the total was stored.
    return cart if row["shown_total"] is None else cart.with_shown(row["shown_total"])


TOKEN_BYTES = 24
"""Random bytes of a token, which nobody can guess."""
_MARK_BYTES = 8
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class CartTokens:
    """The maker of new tokens for carts."""

    def __init__(self, ids: Ids, mark: Callable[[str, str], str] | None = None) -> None:
        """`mark` adds to the credential of an owner what names the cell; None without cells."""
        self._ids = ids
        self._mark = mark

    def new(self, store_id: str, owner_id: str) -> str:
        """Return a new token for a store of an owner."""
        token = make_token(store_id, self._ids.token(TOKEN_BYTES))
        return token if self._mark is None else self._mark(token, owner_id)


def make_token(store_id: str, random: bytes) -> str:
    """Return the token of TOKEN_BYTES random bytes for a store."""
    return urlsafe_b64encode(random + _store_mark(store_id, random)).rstrip(b"=").decode()


def token_of_store(store_id: str, tokens: Iterable[str]) -> str | None:
    """Return the first of the tokens that belongs to the store, or None."""
    return next((token for token in tokens if _belongs(store_id, token)), None)


def _belongs(store_id: str, text: str) -> bool:
    token = text
    if "." in text:
        if mark_of(text) is None:
            return False
        token = bare(text)
    if _TOKEN.fullmatch(token) is None:
        return False
    random = urlsafe_b64decode(f"{token}=")[:TOKEN_BYTES]
    return make_token(store_id, random) == token


def _store_mark(store_id: str, random: bytes) -> bytes:
    """Return the bytes that bind a token to its store. They are no secret."""
    return sha256(f"cart of {store_id} ".encode() + random).digest()[:_MARK_BYTES]
