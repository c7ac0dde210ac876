"""Lists every route of the REST door."""

from collections.abc import Iterable
from typing import NoReturn

from aiohttp import web

from gateway.domain.catalogue import CATALOGUE, Entry
from gateway.domain.contacts.activities import ACTIVITIES
from gateway.domain.contacts.tasks import TASKS, complete, reopen
from gateway.domain.reports.index import REPORTS
from gateway.domain.sales import invoices, order_verbs, orders, quotes
from gateway.domain.sales.invoices import INVOICES
from gateway.domain.sales.orders import ORDERS
from gateway.domain.sales.quotes import QUOTES
from gateway.domain.storefront.stores.stores import STORES
from gateway.records.errors import Refusal
from gateway.rest import (
    account,
    activities,
    api_keys,
    audit,
    batches,
    checkpoints,
    company,
    contacts,
    deals,
    deliveries,
    digests,
    documents,
    events,
    exports,
    import_reports,
    imports,
    order_batches,
    payments,
    privacy,
    product_images,
    profile,
    records,
    reports,
    store_hostnames,
    tasks,
    webhooks,
)
from gateway.rest.document import event_schemas
from gateway.rest.document import page as document
from gateway.rest.document.operations import Handler, Operation, path_of
from gateway.rest.queries import checked
from gateway.rest.records import page, verb, verb_with
from gateway.server.installation import SITE

Route = tuple[str, str, Operation]


MOVES = ("invalid_transition", "conflict")
MOVED = (QUOTES, INVOICES)
"""Resources whose records refuse some changes in some states."""
CHANGES = {one.plural: MOVES for one in MOVED} | {STORES.plural: ("conflict",)}
"""Why a change of a record is refused, by resource; a store's hostname can be another's."""


def of_records(entry: Entry) -> tuple[Route, ...]:
    """Return the routes of a resource: list and read, and what requests may do with it."""
    of = entry.resource
    path = path_of(of)
    record_path = f"{path}/{{id}}"
    routes: list[Route] = [("GET", path, page(of))]
    if entry.create is not None:
        routes.append(("POST", path, records.create(of, entry.create)))
        routes.append(("POST", f"{path}/batch", batches.batch(of, entry.create)))
    routes.append(("GET", record_path, records.read(of)))
    if entry.change is not None:
        changing = records.change(of, entry.change, CHANGES.get(of.plural, ()))
        routes += (("PUT", record_path, changing), ("PATCH", record_path, changing))
    if of.deletable:
        routes.append(("DELETE", record_path, records.remove(of, entry.remove)))
    return tuple(routes)


def bulk_of(entry: Entry) -> tuple[Route, ...]:
    """Return the routes of all records of a resource: export, digest, import."""
    of = entry.resource
    routes: list[Route] = [
        ("GET", f"/api/export/{of.plural}.csv", exports.export_of(of)),
        ("GET", f"/api/digest/{of.plural}", digests.digest_of(of)),
    ]
    if entry.create is not None:
        routes.append(("POST", f"/api/import/{of.plural}", imports.import_of(entry)))
    return tuple(routes)


# Further fixed paths below the path of a resource.
FIXED: tuple[Route, ...] = (
    ("POST", "/api/contacts/upsert", contacts.upsert_contact),
    ("GET", "/api/deals/pipeline-stats", deals.pipeline_stats),
    ("GET", "/api/tasks/overdue", tasks.overdue),
    ("GET", "/api/tasks/upcoming", tasks.upcoming),
    ("GET", "/api/tasks/calendar", tasks.calendar),
    ("POST", "/api/orders/cancel", order_batches.cancel_orders),
    ("GET", "/api/activities/recent", activities.recent_activities),
    ("GET", "/api/activities/entity/{entityId}", page(ACTIVITIES, relatedTo="entityId")),
)
VERBS: tuple[Route, ...] = (
    ("POST", "/api/tasks/{id}/complete", verb(TASKS, complete, "Mark a task as done")),
    ("POST", "/api/tasks/{id}/reopen", verb(TASKS, reopen, "Mark a task as not done")),
    *(
        route
        for one in MOVED
        for route in (
            ("POST", f"/api/{one.plural}/{{id}}/send", documents.send(one)),
            ("POST", f"/api/{one.plural}/{{id}}/link", documents.link(one)),
            ("DELETE", f"/api/{one.plural}/{{id}}/link", documents.end_links(one)),
        )
    ),
    ("POST", "/api/quotes/{id}/accept", verb(QUOTES, quotes.accept, "Accept a quote", MOVES)),
    ("POST", "/api/quotes/{id}/reject", verb(QUOTES, quotes.reject, "Reject a quote", MOVES)),
    ("POST", "/api/quotes/{id}/cancel", verb(QUOTES, quotes.cancel, "Cancel a quote", MOVES)),
    ("POST", "/api/quotes/{id}/convert", verb_with(
        QUOTES, quotes.CONVERT_TAKES, quotes.convert, "Create the invoice of an accepted quote",
        makes=INVOICES, refusals=MOVES)),
    ("POST", "/api/invoices/{id}/pay", verb_with(
        INVOICES, invoices.PAY_TAKES, invoices.pay, "Mark an invoice as paid", refusals=MOVES)),
    ("POST", "/api/invoices/{id}/cancel", verb_with(
        INVOICES, invoices.CANCEL_TAKES, invoices.cancel, "Cancel an invoice", refusals=MOVES)),
    ("POST", "/api/orders/{id}/cancel", verb_with(
        ORDERS, orders.CANCEL_TAKES, order_verbs.cancel, "Cancel an order", refusals=MOVES)),
    ("GET", "/api/contacts/{id}/data-export", privacy.CONTACT_EXPORT),
    ("POST", "/api/contacts/{id}/erase", privacy.ERASE_CONTACT),
    ("POST", "/api/products/{id}/images", product_images.upload_image),
    ("GET", "/api/stores/{id}/hostnames", store_hostnames.list_hostnames),
    ("POST", "/api/stores/{id}/hostnames/check", store_hostnames.check_hostnames),
    ("GET", "/api/clients/{id}/data-export", privacy.CLIENT_EXPORT),
    ("POST", "/api/clients/{id}/erase", privacy.ERASE_CLIENT),
)  # fmt: skip
OTHERS: tuple[Route, ...] = (
    ("GET", "/api/settings/pipeline", deals.read_pipeline),
    ("PUT", "/api/settings/pipeline", deals.change_pipeline),
    ("GET", "/api/reports", reports.index),
    *(("GET", f"/api/reports/{kind.name}", reports.report(kind)) for kind in REPORTS),
    ("GET", "/api/imports", imports.list_imports),
    ("GET", "/api/imports/{id}", imports.read_import),
    ("DELETE", "/api/imports/{id}", imports.cancel_import),
    ("GET", "/api/imports/{id}/faults.csv", import_reports.read_faults),
    ("GET", "/api/imports/{id}/lines.csv", import_reports.read_lines),
    ("GET", "/api/events", events.list_events),
    ("GET", "/api/erasures", privacy.list_erasures),
    ("GET", "/api/erasures/{id}", privacy.read_erasure),
    ("GET", "/api/deliveries", deliveries.list_deliveries),
    ("GET", "/api/deliveries/{id}", deliveries.read_delivery),
    ("POST", "/api/deliveries/{id}/replay", deliveries.replay_delivery),
    ("GET", "/api/log/checkpoints", checkpoints.list_checkpoints),
    ("POST", "/api/log/checkpoints", checkpoints.create_checkpoint),
    ("GET", "/api/audit", audit.list_audit),
    ("GET", "/api/webhooks", webhooks.list_webhooks),
    ("POST", "/api/auth/signup", profile.sign_up),
    ("POST", "/api/auth/token", account.create_token),
    ("DELETE", "/api/auth/token", account.delete_token),
    ("GET", "/api/me", account.me),
    ("PATCH", "/api/me", profile.change_me),
    ("GET", "/api/settings/company", company.read_company),
    ("PUT", "/api/settings/company", company.change_company),
    ("GET", "/api/keys", api_keys.list_keys),
    ("POST", "/api/keys", api_keys.create_key),
    ("DELETE", "/api/keys/{id}", api_keys.delete_key),
    ("POST", "/api/payments/callback/{id}", payments.report),
    ("GET", "/api/schemas", event_schemas.index),
    ("GET", "/api/schemas/{event}", event_schemas.read),
    ("GET", "/api/openapi.json", document.document),
    ("GET", "/api/docs", document.page),
)


def routes(catalogue: Iterable[Entry] = CATALOGUE) -> tuple[Route, ...]:
    """Return all routes; the catalogue defines those of the records."""
    routes: list[Route] = []
    for entry in catalogue:
        # Fixed paths precede those with {id}, because the first match wins.
        path = path_of(entry.resource)
        routes += (route for route in FIXED if route[1].startswith(f"{path}/"))
        routes += of_records(entry)
        routes += (route for route in VERBS if route[1].startswith(f"{path}/"))
        routes += bulk_of(entry)
    return (*routes, *OTHERS)


ROUTES = routes()


WEBHOOKS = "/api/webhooks"
CONSOLE = "/console/webhooks"


def _managed(request: web.Request, allowed: str) -> Refusal:
    """Return the refusal that names the console page for webhooks."""
    address = request.app[SITE].public_url + CONSOLE
    return Refusal(
        "method_not_allowed",
        f"Create, change and delete webhooks in the console at {address}; "
        "GET /api/webhooks lists them.",
        facts={"allow": allowed},
    )


def _all_but(path: str) -> Handler:
    """Return a handler that refuses the methods without a route on this path."""
    methods = {method for method, its_path, _ in ROUTES if its_path == path}
    allowed = sorted(methods | {"HEAD"} if "GET" in methods else methods)

    async def refuse(request: web.Request) -> NoReturn:
        if path == WEBHOOKS and request.method != "OPTIONS":
            raise _managed(request, ",".join(allowed))
        raise web.HTTPMethodNotAllowed(request.method, allowed)

    return refuse


async def _one_webhook(request: web.Request) -> NoReturn:
    """Refuse a request for one webhook: the REST API only lists webhooks."""
    if request.method in ("GET", "HEAD"):
        raise web.HTTPNotFound
    if request.method == "OPTIONS":
        raise web.HTTPMethodNotAllowed(request.method, ())
    raise _managed(request, "")


def add_routes(router: web.UrlDispatcher) -> None:
    """Add the routes of the REST door, with HEAD wherever there is GET."""
    for method, path, operation in ROUTES:
        asks = method == "GET" or any(p.where == "query" for p in operation.parameters)
        handle = checked(operation) if asks else operation.handle
        router.add_route(method, path, handle)
        if method == "GET":
            router.add_route("HEAD", path, handle)
    for path in {path for _, path, _ in ROUTES if "{" not in path}:
        # Other methods must not match the path with {id}: `recent` is not an id.
        router.add_route("*", path, _all_but(path))
    router.add_route("*", f"{WEBHOOKS}/{{id}}", _one_webhook)
    document.add_assets(router)
