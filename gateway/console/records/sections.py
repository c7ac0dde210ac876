"""Makes the pages of every resource of the catalogue, with what some have of their own."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from gateway.console.layout.pages import Handler, action, page, upload
from gateway.console.records import delete_page, form_pages, list_page, product_images
from gateway.console.records.orders import ORDER_PARTS
from gateway.console.records.page_parts import Parts
from gateway.console.records.resource_pages import ResourcePages
from gateway.console.records.view_page import KINDS, View
from gateway.domain.catalogue import CATALOGUE
from gateway.domain.images.encoding import MOST_BYTES
from gateway.domain.sales.invoices import INVOICE
from gateway.domain.sales.products import PRODUCTS
from gateway.domain.sales.quotes import QUOTE

LINES = {"items": "parts/lines_editor.html"}
LINE_TOTALS = {"items": ("total",)}
STORE_GROUPS: Mapping[str, Sequence[str]] = {
    "identity": ("hostname", "name", "language", "active"),
    "delivery": ("shippingRules",),
    "payment": ("paymentMethods", "pixKey", "checkoutUrl"),
    "mails": ("orderMails", "orderPageUrl", "passwordResetUrl", "emailVerificationUrl"),
    "sales": ("dealOnCheckout", "reviewModeration", "oneReviewPerProduct"),
    "advanced": ("aliases", "allowedOrigins", "cookieSameSite", "idps"),
}
SHIPPING_TYPES = ("standard", "express", "pac", "sedex", "courier", "carrier", "pickup")
PARTS: Mapping[str, Parts] = {
    "contacts": Parts(columns=("name", "email", "phone", "companyId", "tags", "createdAt")),
    "companies": Parts(columns=("name", "cnpj", "email", "phone", "industry", "createdAt")),
    "deals": Parts(
        columns=("title", "value", "stage", "status", "companyId", "expectedCloseDate"),
        tabs="status", list_acts="parts/deal_list_acts.html", acts="parts/deal_acts.html",
    ),
    "tasks": Parts(
        columns=("title", "dueDate", "priority", "completed", "contactId", "dealId"),
        tabs="completed", list_acts="parts/task_list_acts.html",
        more_tabs="parts/task_tabs.html",
    ),
    "activities": Parts(
        columns=("description", "type", "relatedTo", "createdAt"), tabs="type",
        left_out=("relatedType", "createdBy"),
    ),
    "invoices": Parts(
        columns=("number", "status", "total", "dueDate", "contactId", "companyId"), tabs="status",
        acts="parts/document_acts.html", unwritten=("status",), editors=LINES,
        columns_left_out=LINE_TOTALS, edited_in=INVOICE.open,
    ),
    "quotes": Parts(
        columns=("number", "status", "total", "validUntil", "contactId", "companyId"),
        tabs="status", links={"invoiceId": "invoices"}, acts="parts/document_acts.html",
        unwritten=("status", "total"), editors=LINES, columns_left_out=LINE_TOTALS,
        edited_in=QUOTE.open,
    ),
    "orders": ORDER_PARTS,
    "stores": Parts(
        columns=("hostname", "name", "active", "createdAt"), tabs="active",
        live=True, acts="parts/store_acts.html", last=("idps",), groups=STORE_GROUPS,
        choices={"shippingRules.type": SHIPPING_TYPES},
    ),
    "products": Parts(
        columns=("name", "sku", "price", "stock", "active", "storeId"),
        tabs="active", last=("images",), above="parts/product_stock.html",
        left_out=("stock", "images"),
    ),
    "categories": Parts(columns=("name", "slug", "parentId", "storeId")),
    "coupons": Parts(
        tabs="active", links={"modalId": "discount-modals"},
        columns=("code", "discountPercentage", "discountValue", "uses", "endsAt", "active"),
        above="parts/coupon_use.html", left_out=("uses", "maxUses"),
    ),
    "discount-modals": Parts(
        tabs="active",
        columns=("title", "prefix", "discountPercentage", "discountValue", "validDays", "active"),
    ),
    "ebooks": Parts(
        columns=("title", "active", "storeId", "createdAt"), tabs="active"
    ),
    "reviews": Parts(
        columns=("text", "stars", "productId", "author", "status", "createdAt"),
        tabs="status", live=True,
    ),
    "clients": Parts(
        columns=("name", "email", "phone", "storeId", "contactId", "createdAt")
    ),
}  # fmt: skip
"""The parts of resources by their plural."""

SECTIONS: Mapping[str, ResourcePages] = {
    entry.resource.plural: ResourcePages(entry, PARTS.get(entry.resource.plural, Parts()))
    for entry in CATALOGUE
}
"""The pages of each resource by its plural."""

Add = Callable[[str, Handler], object]


def add_records(get: Add, post: Add) -> None:
    """Add the routes of every resource: those of its list, its form, and each record."""
    for section in SECTIONS.values():
        path, record_path = section.path, f"{section.path}/{{id}}"
        view = View(section, tuple(SECTIONS.values()))
        get(path, page(partial(list_page.index, section)))
        get(f"{path}/suggest", page(partial(form_pages.suggest, section)))
        if section.entry.create is not None:
            post(path, action(partial(form_pages.create, section)))
            get(f"{path}/new", page(partial(form_pages.new, section)))
        get(record_path, page(view.show))
        if section.entry.change is not None:
            get(f"{record_path}/edit", page(partial(form_pages.edit_page, section)))
            post(record_path, action(partial(form_pages.edit, section)))
        if section.resource.deletable:
            get(f"{record_path}/delete", page(partial(delete_page.ask, section)))
            post(f"{record_path}/delete", action(partial(delete_page.delete, section)))
        if section.resource.events:
            get(f"{record_path}/events", page(view.events))
        if section.resource is PRODUCTS:
            post(f"{record_path}/images", upload(partial(product_images.add, view), MOST_BYTES))
            post(f"{record_path}/images/place", action(product_images.place))
        if section.resource.table in KINDS:
            post(f"{record_path}/notes", action(view.note))
