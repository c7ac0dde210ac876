"""Every route of the REST door."""

from aiohttp import web

from gateway.resources.crm import activities, deals, tasks
from gateway.resources.crm.activities import ACTIVITIES
from gateway.resources.crm.companies import COMPANIES
from gateway.resources.crm.contacts import CONTACTS
from gateway.resources.crm.deals import DEALS
from gateway.resources.crm.tasks import TASKS
from gateway.rest import account, sales
from gateway.rest.handlers import Handler, change, create, page, read, remove, verb

# Fixed paths stand before the ones with {id}.
ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "/api/contacts", page(CONTACTS)),
    ("POST", "/api/contacts", create(CONTACTS)),
    ("GET", "/api/contacts/{id}", read(CONTACTS)),
    ("PUT", "/api/contacts/{id}", change(CONTACTS)),
    ("PATCH", "/api/contacts/{id}", change(CONTACTS)),
    ("DELETE", "/api/contacts/{id}", remove(CONTACTS)),
    ("GET", "/api/companies", page(COMPANIES)),
    ("POST", "/api/companies", create(COMPANIES)),
    ("GET", "/api/companies/{id}", read(COMPANIES)),
    ("PUT", "/api/companies/{id}", change(COMPANIES)),
    ("PATCH", "/api/companies/{id}", change(COMPANIES)),
    ("DELETE", "/api/companies/{id}", remove(COMPANIES)),
    ("GET", "/api/deals", page(DEALS)),
    ("POST", "/api/deals", create(DEALS, deals.create)),
    ("GET", "/api/deals/pipeline-stats", sales.pipeline_stats),
    ("GET", "/api/deals/{id}", read(DEALS)),
    ("PUT", "/api/deals/{id}", change(DEALS, deals.change)),
    ("PATCH", "/api/deals/{id}", change(DEALS, deals.change)),
    ("DELETE", "/api/deals/{id}", remove(DEALS)),
    ("GET", "/api/settings/pipeline", sales.read_pipeline),
    ("PUT", "/api/settings/pipeline", sales.change_pipeline),
    ("GET", "/api/tasks", page(TASKS)),
    ("POST", "/api/tasks", create(TASKS)),
    ("GET", "/api/tasks/overdue", sales.by_due_date(tasks.overdue)),
    ("GET", "/api/tasks/upcoming", sales.by_due_date(tasks.upcoming)),
    ("GET", "/api/tasks/calendar", sales.calendar),
    ("GET", "/api/tasks/{id}", read(TASKS)),
    ("PUT", "/api/tasks/{id}", change(TASKS)),
    ("PATCH", "/api/tasks/{id}", change(TASKS)),
    ("DELETE", "/api/tasks/{id}", remove(TASKS)),
    ("POST", "/api/tasks/{id}/complete", verb(tasks.complete)),
    ("POST", "/api/tasks/{id}/reopen", verb(tasks.reopen)),
    ("GET", "/api/activities", page(ACTIVITIES)),
    ("POST", "/api/activities", create(ACTIVITIES, activities.create)),
    ("GET", "/api/activities/recent", sales.recent_activities),
    ("GET", "/api/activities/entity/{entityId}", page(ACTIVITIES, relatedTo="entityId")),
    ("GET", "/api/activities/{id}", read(ACTIVITIES)),
    ("PUT", "/api/activities/{id}", change(ACTIVITIES)),
    ("PATCH", "/api/activities/{id}", change(ACTIVITIES)),
    ("DELETE", "/api/activities/{id}", remove(ACTIVITIES)),
    ("GET", "/api/webhooks", account.list_webhooks),
    ("POST", "/api/auth/token", account.create_token),
    ("DELETE", "/api/auth/token", account.delete_token),
    ("GET", "/api/me", account.me),
    ("GET", "/api/keys", account.list_keys),
    ("POST", "/api/keys", account.create_key),
    ("DELETE", "/api/keys/{id}", account.delete_key),
)


def add_routes(app: web.Application) -> None:
    """Hang the door on `app`. HEAD answers wherever GET does."""
    for method, path, handler in ROUTES:
        app.router.add_route(method, path, handler)
        if method == "GET":
            app.router.add_route("HEAD", path, handler)
