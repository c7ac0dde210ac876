"""The delete of a record: a question that tells what goes with it, and the delete."""

from aiohttp import web

from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.console.records.nouns import Words
from gateway.console.records.resource_pages import ResourcePages
from gateway.domain.catalogue import BY_TABLE
from gateway.records import actions, cascades
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Record
from gateway.records.resource import Remove, Resource
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx

Going = list[tuple[str, Resource, int]]
"""How a delete changes records of a resource, and how many: removed, or kept."""


async def ask(
    section: ResourcePages, request: web.Request, visitor: SignedIn
) -> web.StreamResponse:
    """Ask for confirmation before a record is deleted, and tell what goes with it."""
    record, going = await request.app[DB].read(_going, section, visitor.actor, pages.id_of(request))
    texts = request[READER].texts
    context = {
        "section": section, "words": section.words(request), "record": record,
        "heading": section.heading(record), "most": cascades.MOST,
        "going": [(how, Words(texts, target).title, count) for how, target, count in going],
    }  # fmt: skip
    return templates.render(request, visitor, "record_delete.html", context)


async def delete(
    section: ResourcePages, request: web.Request, visitor: SignedIn, form: Form
) -> web.StreamResponse:
    """Delete a record unless it has changed since the question was shown."""
    db, actor, record_id = request.app[DB], visitor.actor, pages.id_of(request)
    expected = frozenset({form.text("version")})
    try:
        if section.entry.remove is not None:
            await db.write(section.entry.remove, actor, record_id, expected)
        else:
            await db.write(actions.remove, actor, section.resource, record_id, expected)
    except Refusal as refusal:
        if refusal.code == "precondition_failed":
            raise Refusal("conflict", "error.changed_delete") from None
        raise
    return pages.to(section.path, section.done(request[READER].texts, "deleted"))


async def _going(
    tx: Tx, section: ResourcePages, actor: Actor, record_id: str
) -> tuple[Record, Going]:
    record = await actions.read(tx, actor, section.resource, record_id)
    going = []
    for cascade, count in await cascades.counted(tx, section.resource, actor.owner_id, record_id):
        target = BY_TABLE.get(cascade.table)
        if count and target is not None:
            how = "removed" if isinstance(cascade, Remove) else "kept"
            going.append((how, target, count))
    return record, going
