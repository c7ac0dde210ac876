"""The page of the search in the frame: what was found of each kind, with links."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from markupsafe import Markup

from gateway.console.layout import templates
from gateway.console.layout.display import inert
from gateway.console.layout.guard import SignedIn
from gateway.console.records import facts, listing
from gateway.console.records.nouns import label_of
from gateway.console.records.resource_pages import ResourcePages
from gateway.console.records.widths import width_of
from gateway.records import finding
from gateway.records.finding import Found
from gateway.server.app_keys import DB

PATH = "/console/find"
KINDS = ("contacts", "companies", "deals", "tasks", "orders", "quotes", "invoices", "products")
"""Plurals in the order of the page; what a record names comes before it."""
MOST_FACTS = 3


@dataclass(frozen=True, slots=True)
class Group:
    """What was found of one kind."""

    section: ResourcePages
    title: str
    columns: Sequence[tuple[str, str]]
    """Label and kind of each column, the first of which names the record."""
    rows: Sequence[tuple[str, str, Sequence[Markup]]]
    """Address, name, further cells of each record."""
    more: bool
    cut: bool
    all: str
    """The address of the list with this search."""


async def show(
    sections: Mapping[str, ResourcePages], request: web.Request, visitor: SignedIn
) -> web.StreamResponse:
    """Show what the parameter `q` finds; without one, what can be found."""
    text = listing.text_of(request.query.get("q", ""))
    results: Sequence[Found] = ()
    if text:
        resources = [sections[plural].resource for plural in KINDS]
        owner_id = visitor.actor.owner_id
        results = await request.app[DB].scan(owner_id, finding.find, visitor.actor, resources, text)
    groups = [_group(sections[one.resource.plural], request, one, text) for one in results]
    context: dict[str, Any] = {
        "text": text,
        "groups": groups,
        "looked_at": finding.LOOKED_AT,
        "kinds": [sections[plural].words(request).title for plural in KINDS],
    }
    return templates.render(request, visitor, "find.html", context)


def _group(section: ResourcePages, request: web.Request, result: Found, text: str) -> Group:
    look = section.look(request, {})
    heading, *others = section.columns
    named = section.resource.named
    # The names of other records would be further statements.
    plain = [one for one in others if one in named and named[one].reference is None][:MOST_FACTS]
    cells = [facts.cell_of(section.resource, name, look) for name in plain]
    rows = [
        (
            f"{section.path}/{record.id}",
            inert(section.heading(record)) or look.texts("records.long"),
            [Markup(cell(record)) or facts.NONE for cell in cells],  # noqa: S704 - a cell escapes
        )
        for record in result.records
    ]
    columns = [(label_of(look.texts, heading), "name")]
    columns += [(label_of(look.texts, name), width_of(section.resource, name)) for name in plain]
    address = f"{section.path}?{urlencode({'search': text})}"
    title = section.words(request).title
    return Group(
        section=section,
        title=title,
        columns=columns,
        rows=rows,
        more=result.more,
        cut=result.cut,
        all=address,
    )
