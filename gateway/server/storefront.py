"""Creates the parts that serve the customers of stores."""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

from gateway.domain.accounts.counter_store import AttemptLimit, NewCounterStore, OwnCounters
from gateway.domain.accounts.passwords import Passwords
from gateway.domain.cells.cells import Cells
from gateway.domain.storefront.carts.looks import Looks
from gateway.domain.storefront.carts.rows import CartTokens
from gateway.domain.storefront.checkouts.budgets import CheckoutRates, UnpaidLimits
from gateway.domain.storefront.checkouts.checkout import Checkouts
from gateway.domain.storefront.sign_in.customer_passwords import CustomerPasswords
from gateway.domain.storefront.sign_in.idp_keys import Providers
from gateway.domain.storefront.stores import hostname_claims
from gateway.domain.storefront.visitors.session_tokens import TokenRing
from gateway.domain.storefront.visitors.shopper import NetworkDigests
from gateway.records.values import hostnames
from gateway.server.config import Config
from gateway.server.http.search_budgets import SearchBudgets
from outbox.database.transaction import Database
from outbox.webhooks.secrets import KeyRing


@dataclass(frozen=True, slots=True)
class Storefront:
    """The parts that serve the customers of stores."""

    tokens: TokenRing
    passwords: CustomerPasswords
    resets: AttemptLimit
    """How often an address may ask for new passwords and set them."""
    exports: AttemptLimit
    """How often a customer may export their data."""
    networks: NetworkDigests
    carts: CartTokens
    carts_per_day: int
    """Most carts that an address may begin in a day; 0 is no limit."""
    checkouts: Checkouts
    searches: SearchBudgets
    looks: Looks
    providers: Providers
    mails: bool
    """Whether the installation sends mails."""


if TYPE_CHECKING:
    from gateway.server.upkeep.host_lookups import HostLookups

STOREFRONT = web.AppKey("STOREFRONT", Storefront)


def build_storefront(
    config: Config,
    db: Database,
    ring: KeyRing,
    *,
    passwords: Passwords,
    providers: Providers,
    cells: Cells,
    keep: NewCounterStore = OwnCounters,
) -> Storefront:
    """Return the parts."""
    limits = config.limits
    resets = AttemptLimit(
        db.clock, 20, 900.0, "Too many requests for new passwords; try again later.", keep
    )
    exports = AttemptLimit(
        db.clock, 5, 900.0, "Too many exports of your data; try again later.", keep
    )
    unpaid = UnpaidLimits(
        limits.unpaid_orders_per_email,
        limits.unpaid_orders_per_address,
        limits.reserved_items,
        limits.reserved_percent,
    )
    carts = CartTokens(db.ids, cells.marked if config.cell.name else None)
    rates = CheckoutRates(db.clock, limits.checkouts_per_minute, limits.checkouts_per_hour, keep)
    return Storefront(
        tokens=TokenRing(ring),
        passwords=CustomerPasswords(db, passwords, limits.password_tries, keep),
        resets=resets,
        exports=exports,
        networks=NetworkDigests(ring),
        carts=carts,
        carts_per_day=limits.carts_per_day,
        checkouts=Checkouts(db, ring, carts, rates, unpaid, config.storefront.order_days),
        searches=SearchBudgets(db, limits.searched_rows_per_minute, keep),
        looks=Looks(db),
        providers=providers,
        mails=bool(config.mail.host),
    )


def lookups_of(config: Config, db: Database) -> "HostLookups | None":
    """Return the duty that proves hostnames, None where they need no proof."""
    if not config.storefront.verify_hostnames:
        return None
    # Only who verifies hostnames pays for the library.
    from gateway.server.upkeep.host_lookups import HostLookups

    return HostLookups(db, config.storefront.name_servers)


async def reserve_hostnames(config: Config, db: Database) -> None:
    """Keep stores from the hostnames at which this installation and its cells answer."""
    urls = (config.server.public_url, *(peer.url for peer in config.cell.peers))
    names = {hostnames.normal(urlsplit(url).hostname or "") for url in urls} - {None}
    own = {name for name in names if name}
    if await db.read(hostname_claims.reserved) != own:
        await db.write(hostname_claims.reserve, own)
