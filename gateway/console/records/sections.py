"""Makes the pages of every resource of the catalogue."""

from collections.abc import Mapping

from gateway.console.records.orders import ORDER_PARTS
from gateway.console.records.parts import Parts
from gateway.console.records.section import Section
from gateway.domain.catalogue import CATALOGUE

PARTS: Mapping[str, Parts] = {
    "contacts": Parts(columns=("name", "email", "phone", "companyId", "tags", "createdAt")),
    "companies": Parts(columns=("name", "cnpj", "email", "phone", "industry", "createdAt")),
    "deals": Parts(
        columns=("title", "value", "stage", "status", "companyId", "expectedCloseDate"),
        tabs="status",
    ),
    "tasks": Parts(
        columns=("title", "dueDate", "priority", "completed", "contactId", "dealId"),
        tabs="completed",
    ),
    "activities": Parts(
        columns=("description", "type", "relatedTo", "createdAt"), tabs="type",
        left_out=("relatedType", "createdBy"),
    ),
    "invoices": Parts(
        columns=("number", "status", "total", "dueDate", "contactId", "companyId"), tabs="status"
    ),
    "quotes": Parts(
        columns=("number", "status", "total", "validUntil", "contactId", "companyId"),
        tabs="status", links={"invoiceId": "invoices"},
    ),
    "orders": ORDER_PARTS,
    "stores": Parts(
        group="shop", columns=("hostname", "name", "active", "createdAt"), tabs="active",
        live=True, acts="parts/store_acts.html", last=("idps",),
    ),
    "products": Parts(
        group="shop", columns=("name", "sku", "price", "stock", "active", "storeId"),
        tabs="active", last=("images",),
    ),
    "categories": Parts(group="shop", columns=("name", "slug", "parentId", "storeId")),
    "coupons": Parts(
        group="shop", tabs="active", links={"modalId": "discount-modals"},
        columns=("code", "discountPercentage", "discountValue", "uses", "endsAt", "active"),
    ),
    "discount-modals": Parts(
        group="shop", tabs="active",
        columns=("title", "prefix", "discountPercentage", "discountValue", "validDays", "active"),
    ),
    "ebooks": Parts(
        group="shop", columns=("title", "active", "storeId", "createdAt"), tabs="active"
    ),
    "reviews": Parts(
        group="shop", columns=("text", "stars", "productId", "author", "status", "createdAt"),
        tabs="status", live=True, acts="parts/review_acts.html",
        row_acts="parts/review_row_acts.html",
    ),
    "clients": Parts(
        group="shop", columns=("name", "email", "phone", "storeId", "contactId", "createdAt")
    ),
}  # fmt: skip
"""The parts of resources by their plural."""

SECTIONS: Mapping[str, Section] = {
    entry.resource.plural: Section(entry, PARTS.get(entry.resource.plural, Parts()))
    for entry in CATALOGUE
}
"""The pages of each resource by its plural."""
