"""Lists all resources with their write units, and all events with their fields."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from gateway.domain.contacts import activities, tasks
from gateway.domain.contacts.activities import ACTIVITIES
from gateway.domain.contacts.companies import COMPANIES
from gateway.domain.contacts.contacts import CONTACTS
from gateway.domain.contacts.tasks import TASKS
from gateway.domain.sales import coupons, deals, invoices, products, quotes
from gateway.domain.sales.coupons import COUPONS
from gateway.domain.sales.deals import DEALS
from gateway.domain.sales.invoices import INVOICES
from gateway.domain.sales.orders import ORDERS
from gateway.domain.sales.products import PRODUCTS
from gateway.domain.sales.quotes import QUOTES
from gateway.domain.storefront.campaigns import modals
from gateway.domain.storefront.campaigns.ebooks import EBOOKS
from gateway.domain.storefront.campaigns.modals import DISCOUNT_MODALS
from gateway.domain.storefront.catalogue import categories, reviews
from gateway.domain.storefront.catalogue.categories import CATEGORIES
from gateway.domain.storefront.catalogue.reviews import REVIEWS
from gateway.domain.storefront.privacy import customer_erasure
from gateway.domain.storefront.stores import stores
from gateway.domain.storefront.stores.stores import STORES
from gateway.domain.storefront.visitors.customers import CUSTOMERS
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.record import Draft, Record
from gateway.records.resource import Resource
from outbox.database.transaction import Tx

Create = Callable[[Tx, Actor, Draft], Awaitable[Record]]
Change = Callable[[Tx, Actor, str, Draft, frozenset[str] | None], Awaitable[Record]]
Delete = Callable[[Tx, Actor, str, frozenset[str] | None], Awaitable[None]]
Restore = Callable[[Tx, Actor, Record, Draft], Awaitable[Record]]


@dataclass(frozen=True, eq=False, slots=True)
class Entry:
    """A resource and its write units."""

    resource: Resource
    create: Create | None = None
    change: Change | None = None
    """None: no request does it."""
    remove: Delete | None = None
    """The unit of a delete that does more than actions.remove."""
    restore: Restore | None = None
    """The unit that brings a record of an import to the state of its file (Form.restored)."""


def plain(resource: Resource, restore: Restore | None = None) -> Entry:
    """Return the entry of a resource without rules of its own."""
    return Entry(
        resource, actions.create_of(resource), actions.change_of(resource), restore=restore
    )


CATALOGUE: tuple[Entry, ...] = (
    plain(CONTACTS),
    plain(COMPANIES),
    Entry(DEALS, deals.create, deals.change, restore=deals.restore),
    plain(TASKS, tasks.restore),
    Entry(ACTIVITIES, activities.create, plain(ACTIVITIES).change),
    Entry(INVOICES, invoices.create, invoices.change, restore=quotes.restore_invoice),
    Entry(QUOTES, quotes.create, quotes.change, restore=quotes.restore),
    Entry(PRODUCTS, products.create, products.change, products.remove),
    Entry(ORDERS),
    Entry(STORES, stores.create, stores.change, stores.remove),
    Entry(CATEGORIES, categories.create, categories.change),
    plain(EBOOKS),
    Entry(REVIEWS, None, reviews.change),
    Entry(COUPONS, coupons.create, coupons.change),
    Entry(CUSTOMERS, None, plain(CUSTOMERS).change, customer_erasure.remove),
    Entry(DISCOUNT_MODALS, modals.create, modals.change),
)
RESOURCES: tuple[Resource, ...] = tuple(entry.resource for entry in CATALOGUE)
BY_TABLE: Mapping[str, Resource] = {resource.table: resource for resource in RESOURCES}
BY_PLURAL: Mapping[str, Resource] = {resource.plural: resource for resource in RESOURCES}

EVENTS: dict[str, tuple[str, ...]] = {
    f"{resource.noun}.{change}": tuple(fields)
    for resource in RESOURCES
    for change, fields in resource.events.items()
}
"""The name of every event and the fields of its `data`, in the documented order."""
EVENT_NAMES: tuple[str, ...] = tuple(EVENTS)
FURTHER_NAMES: tuple[str, ...] = tuple(f"{ORDERS.noun}.{change}" for change in ORDERS.events)
"""The events beside the 20 of `availableEvents`, which version 1.0.0 of the API names."""
AVAILABLE_NAMES: tuple[str, ...] = tuple(name for name in EVENT_NAMES if name not in FURTHER_NAMES)
