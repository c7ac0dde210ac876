"""What the product offers: its resources, and every event with the fields of its data."""

from gateway.resource import Resource
from gateway.resources.crm.activities import ACTIVITIES
from gateway.resources.crm.companies import COMPANIES
from gateway.resources.crm.contacts import CONTACTS
from gateway.resources.crm.deals import DEALS
from gateway.resources.crm.tasks import TASKS

RESOURCES: tuple[Resource, ...] = (CONTACTS, COMPANIES, DEALS, TASKS, ACTIVITIES)

# Events of the records that are not declared yet; each moves into its declaration.
_AWAITED: dict[str, tuple[str, ...]] = {
    "invoice.created": ("id", "number", "total", "status", "dueDate", "createdAt"),
    "invoice.updated": ("id", "number", "status", "updatedAt"),
    "invoice.paid": ("id", "number", "total", "paidAt"),
    "quote.created": ("id", "number", "total", "status", "createdAt"),
    "quote.updated": ("id", "number", "status", "updatedAt"),
    "product.created": ("id", "name", "price", "createdAt"),
    "product.updated": ("id", "name", "price", "updatedAt"),
    "product.deleted": ("id",),
}

EVENTS: dict[str, tuple[str, ...]] = {
    f"{resource.noun}.{change}": tuple(fields)
    for resource in RESOURCES
    for change, fields in resource.events.items()
} | _AWAITED
"""The name of every event and the fields of its `data`, in the documented order."""
EVENT_NAMES: tuple[str, ...] = tuple(EVENTS)
