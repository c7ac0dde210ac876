"""The pages about persons (LGPD): find one, the file with everything, erasure, certificates."""

from aiohttp import web

from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.domain.contacts.person_erasures import Erasure, Person
from gateway.domain.privacy import certificates, export, person_overview, progress
from gateway.records.audit import Actor
from gateway.records.record import Record
from gateway.server.app_keys import DB, KEYRING
from gateway.server.http.answers import Flow
from outbox.database.transaction import Tx
from outbox.ids import is_id

HOME = "/console/privacy"
ERASURES = "/console/erasures"
PAGE = 20
LONGEST = 254
KINDS = frozenset({
    "contacts", "clients", "activities", "tasks", "deals", "quotes", "invoices", "orders",
    "reviews", "addresses", "sessions", "identities", "mails", "coupons", "storedResponses",
    "importLines", "events", "deliveries", "attempts", "audit", "backups",
})  # fmt: skip
"""What has a name of its own in the texts; any other resource is named as in the API."""


async def index(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the search for a person with its results, and the erasures."""
    db, actor = request.app[DB], visitor.actor
    text = request.query.get("q", "").strip()[:LONGEST]
    after = request.query.get("after", "").lower()
    matches = await db.scan(actor.owner_id, person_overview.find, actor, text) if text else None
    erasures = await db.read(certificates.listed, actor, after if is_id(after) else None, PAGE + 1)
    context = {
        "q": text,
        "found": matches,
        "erasures": erasures[:PAGE],
        "onward": erasures[PAGE - 1].id if len(erasures) > PAGE else "",
    }
    return templates.render(request, visitor, "privacy.html", context)


async def person(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show what is stored about a person: counts, the file, and the way to erase it."""
    return await _person(request, visitor, "person.html")


async def erase_page(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Ask for confirmation: what goes, and what stays."""
    return await _person(request, visitor, "person_erase.html")


async def _person(request: web.Request, visitor: SignedIn, template: str) -> web.StreamResponse:
    record, everything = await _found(request, visitor)
    counts = await request.app[DB].scan(
        visitor.actor.owner_id, person_overview.counts, visitor.actor, everything
    )
    context = {
        "record": record, "here": f"{HOME}/{record.id}",
        "counts": counts, "most": person_overview.MOST, "person": everything, "kinds": KINDS,
    }  # fmt: skip
    return templates.render(request, visitor, template, context)


async def file(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Send the file with everything about a person."""
    db, actor = request.app[DB], visitor.actor
    named = await db.read(person_overview.named, actor, pages.id_of(request))
    record = await db.write(export.check, actor, named.resource, named.id)
    everything = await export.found(db, actor, record)
    headers = {
        "Content-Type": "application/json",
        "Content-Disposition": f'attachment; filename="person-{record.id}.json"',
    }
    return Flow(export.export(db, actor, everything), headers)


async def erase(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Erase a person; the page of the erasure follows it."""
    erasure = await request.app[DB].write(_erase, visitor.actor, pages.id_of(request))
    await progress.at_once(request.app[DB], erasure)
    return pages.to(f"{ERASURES}/{erasure.id}")


async def _erase(tx: Tx, actor: Actor, record_id: str) -> Erasure:
    earlier = await certificates.earlier(tx, actor, record_id)
    if earlier is not None:
        return earlier
    named = await person_overview.named(tx, actor, record_id)
    return await certificates.request(tx, actor, named.resource, record_id)


async def erasure(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show an erasure; when it is done, its certificate."""
    stored: Erasure = await request.app[DB].read(
        certificates.own, visitor.actor, pages.id_of(request)
    )
    context = {
        "erasure": stored,
        "kept": certificates.kept(stored),
        "kinds": KINDS,
        "plural": certificates.OF[stored.noun].plural,
        "intact": certificates.is_intact(stored, request.app[KEYRING]),
    }
    return templates.render(request, visitor, "erasure.html", context)


async def _found(request: web.Request, visitor: SignedIn) -> tuple[Record, Person]:
    db, actor = request.app[DB], visitor.actor
    record = await db.read(person_overview.named, actor, pages.id_of(request))
    return record, await export.found(db, actor, record)
