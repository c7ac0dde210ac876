"""What the product offers: its resources, and every event with the fields of its data."""

from gateway.resource import Resource
from gateway.resources.crm.activities import ACTIVITIES
from gateway.resources.crm.companies import COMPANIES
from gateway.resources.crm.contacts import CONTACTS
from gateway.resources.crm.deals import DEALS
from gateway.resources.crm.invoices import INVOICES
from gateway.resources.crm.products import PRODUCTS
from gateway.resources.crm.quotes import QUOTES
from gateway.resources.crm.tasks import TASKS

RESOURCES: tuple[Resource, ...] = (
    CONTACTS, COMPANIES, DEALS, TASKS, ACTIVITIES, INVOICES, QUOTES, PRODUCTS,
)  # fmt: skip

EVENTS: dict[str, tuple[str, ...]] = {
    f"{resource.noun}.{change}": tuple(fields)
    for resource in RESOURCES
    for change, fields in resource.events.items()
}
"""The name of every event and the fields of its `data`, in the documented order."""
EVENT_NAMES: tuple[str, ...] = tuple(EVENTS)
