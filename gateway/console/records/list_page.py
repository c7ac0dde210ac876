"""The list of a resource: searched, filtered, sorted, a page at a time, in the chosen columns."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from markupsafe import Markup, escape

from gateway.console.layout import polling, templates
from gateway.console.layout.display import inert
from gateway.console.layout.guard import SignedIn
from gateway.console.layout.reader import READER
from gateway.console.records import facts, inputs, linked_pages, listing, references, verbs
from gateway.console.records.facts import CellStyle
from gateway.console.records.listing import Asked
from gateway.console.records.nouns import Words, label_of
from gateway.console.records.references import Names
from gateway.console.records.resource_pages import ResourcePages
from gateway.console.records.widths import width_of
from gateway.records import actions
from gateway.records.audit import Actor
from gateway.records.query import Page, costly
from gateway.records.record import Record
from gateway.records.resource import Filter
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx

Ordered = Callable[[Tx, Actor, int, int], Awaitable[Page]]
"""A unit that reads a page of a list in an order of its own: by page and limit."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list: its label, and the address of the list in its order if it has one."""

    name: str
    label: str
    sort: str = ""
    sorted: str = ""
    """The order that the list has by this column, in the words of aria-sort."""
    width: str = "name"
    """See gateway.console.records.widths; the first column takes what is left."""


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a list, its name and its further cells as HTML."""

    record: Record
    name: Markup
    cells: Markup

    def head(self, section: ResourcePages, label: str) -> str:
        """Return the begin of the row: the cell with the name, which is still open."""
        return (
            f'<tr><th scope="row" class="is-name" data-label="{label}"><a id="r-{self.record.id}"'
            f' class="cut"{_title(section.heading(self.record))}'
            f' href="{section.path}/{self.record.id}">{self.name}</a>'
        )


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of a list, with the addresses of the pages beside it."""

    rows: Sequence[Row]
    heads: Sequence[Markup]
    body: Markup
    """All rows, unless a template adds to each."""
    columns: Sequence[Column]
    total: int
    next: str
    previous: str


def _asked(section: ResourcePages, request: web.Request) -> Asked:
    """Return what the address of a list asks for."""
    return listing.asked(
        section.resource, section.path, request.query, request[READER].texts,
        tabs=section.parts.tabs, columns=section.offered, usual=section.columns[1:],
    )  # fmt: skip


async def index(
    section: ResourcePages, request: web.Request, visitor: SignedIn
) -> web.StreamResponse:
    """Show a page of the list; see gateway.console.records.listing."""
    asked = _asked(section, request)
    db, actor, query = request.app[DB], visitor.actor, asked.query()
    if costly(section.resource, query) is None:
        page, names = await db.read(_page, section, actor, asked)
    else:
        # A list that looks at many records takes its turn.
        page, names = await db.scan(actor.owner_id, _page, section, actor, asked)
    look = section.look(request, names)
    listed = _listed(section, asked, look, page)
    return _show(section, request, visitor, asked, look, listed)


async def ordered(
    section: ResourcePages, request: web.Request, visitor: SignedIn, view: str, unit: Ordered
) -> web.StreamResponse:
    """Show a list that another unit reads, page by page, at `due/{view}` below the list."""
    plain = _asked(section, request)
    asked = replace(plain, path=request.path, filters={}, search="", sort="dueDate")
    db, actor = request.app[DB], visitor.actor
    page, names = await db.scan(actor.owner_id, _ordered, section, actor, asked, unit)
    look = section.look(request, names)
    listed = _listed(section, asked, look, page)
    # The address of a day has the day, too.
    day = request.query.get("day", "")
    day_query = f"&{urlencode({'day': day})}" if day else ""
    listed = replace(
        listed,
        next=listed.next and listed.next + day_query,
        previous=listed.previous and listed.previous + day_query,
    )
    first = replace(plain, filters={}, search="", page=1)
    return _show(section, request, visitor, first, look, listed, view=view)


def _show(
    section: ResourcePages,
    request: web.Request,
    visitor: SignedIn,
    asked: Asked,
    look: CellStyle,
    listed: Listed,
    *,
    view: str = "",
) -> web.StreamResponse:
    context = {
        "section": section, "parts": section.parts, "words": section.words(request),
        "asked": asked, "page": listed, "selecting": asked.selecting and bool(listed.rows),
        "scoped": _scoped(section, asked, look), "filters": _filters(section, look),
        "choice": _choice(section, asked, look), "offers": linked_pages.of(request, section.name),
        "verbs_of": verbs.of, "row_verbs": verbs.in_rows(section.resource), "view": view,
        "total": _total(asked, look, listed.total),
        "listed_at": verbs.place_of(view, request.query_string) if view else asked.text,
    }  # fmt: skip
    if not section.parts.live:
        return templates.render(request, visitor, "records.html", context)
    return polling.live(request, visitor, "records.html", "parts/record_rows.html", context)


def _total(asked: Asked, look: CellStyle, total: int) -> str:
    """Return how many records the list has; of a narrowed list, which is counted to a bound."""
    if not asked.narrowed:
        return look.texts("records.total", count=total)
    most = listing.MOST_COUNTED
    count = f"{look.texts.number(most)}+" if total > most else total
    return look.texts("records.results", count=count)


async def _page(tx: Tx, section: ResourcePages, actor: Actor, asked: Asked) -> tuple[Page, Names]:
    """Return a page of records and the names of those that its cells and filters refer to."""
    resource, links = section.resource, section.parts.links
    page = await actions.page(tx, actor, resource, asked.query())
    shown = [
        resource.named[name] for name in asked.columns or section.columns if name in resource.named
    ]
    names = await references.names_of(tx, actor, page.records, shown, links)
    scope: dict[str, str] = {}
    for name, text in asked.filters.items():
        target = section.target(name)
        if target is not None:
            scope |= await references.named(tx, actor, target, [text.lower()])
    return page, {**names, **scope}


async def _ordered(
    tx: Tx, section: ResourcePages, actor: Actor, asked: Asked, unit: Ordered
) -> tuple[Page, Names]:
    page = await unit(tx, actor, asked.page, asked.limit)
    named = section.resource.named
    shown = [named[name] for name in asked.columns or section.columns if name in named]
    return page, await references.names_of(tx, actor, page.records, shown, section.parts.links)


def _listed(section: ResourcePages, asked: Asked, look: CellStyle, page: Page) -> Listed:
    names = tuple(dict.fromkeys((section.columns[0], *(asked.columns or section.columns[1:]))))
    heading, *others = (facts.cell_of(section.resource, name, look) for name in names)
    without = escape(look.texts("records.long"))
    columns = [_column(section, asked, look, name) for name in names]
    # Each cell is a few joined texts: templates would take longer than the database.
    begins = [
        f'<td class="is-{one.width}" data-label="{escape(one.label)}"><div class="cut"'
        for one in columns[1:]
    ]
    titles = [_titles(section, one) for one in columns[1:]]
    places = list(zip(begins, titles, others, strict=True))
    rows = [
        Row(
            record,
            Markup(heading(record)) or without,  # noqa: S704 - a cell escapes what it writes
            Markup(  # noqa: S704 - as above
                "".join(
                    f"{begin}{title(record)}>{cell(record) or facts.NONE}</div></td>"
                    for begin, title, cell in places
                )
            ),
        )
        for record in page.records
    ]
    label = str(escape(columns[0].label))
    heads = [row.head(section, label) for row in rows]
    body = ""
    adorned = section.parts.tags or section.parts.row_acts or verbs.in_rows(section.resource)
    if not adorned:
        body = "".join(
            f"{head}</th>{row.cells}</tr>" for head, row in zip(heads, rows, strict=True)
        )
    forward = backward = ""
    if page.onward is not None:
        forward = asked.beyond(after=page.onward)
    elif asked.numbered and page.total > asked.page * asked.limit:
        forward = asked.to(page=asked.page + 1) if asked.page < listing.MOST_PAGES else ""
    if page.back is not None:
        backward = asked.beyond(before=page.back)
    elif asked.page > 1:
        backward = asked.to(page=asked.page - 1)
    return Listed(
        rows=rows,
        heads=[Markup(head) for head in heads],  # noqa: S704 - made of cells
        body=Markup(body),  # noqa: S704 - made of cells
        columns=columns,
        total=page.total,
        next=forward,
        previous=backward,
    )


def _titles(section: ResourcePages, column: Column) -> Callable[[Record], str]:
    """Return what writes the whole text of a cell that can be cut."""
    field = section.resource.named.get(column.name)
    if column.width not in ("text", "email") or field is None:
        return lambda record: ""
    place = section.resource.position[field.column]
    return lambda record: _title(record.row[place])


def _title(text: Any) -> str:
    """Return the attribute with a whole text, if it may be cut."""
    text = "" if text is None else str(text)
    return f' title="{escape(inert(text))}"' if len(text) > facts.NARROW else ""


def _column(section: ResourcePages, asked: Asked, look: CellStyle, name: str) -> Column:
    label = label_of(look.texts, name, section.resource.noun)
    width = "name" if name == section.columns[0] else width_of(section.resource, name)
    if name not in {one.name for one in section.resource.sorts}:
        return Column(name, label, width=width)
    field = section.resource.named.get(name)
    # A reader wants A first, and the next due date, but the newest and the largest.
    rising = field is not None and inputs.kind_of(field.format.schema) in ("text", "time")
    order = {name: "ascending", f"-{name}": "descending"}.get(asked.sort, "none")
    return Column(name, label, asked.sorted_by(name, "" if rising else "-"), order, width)


def _choice(section: ResourcePages, asked: Asked, look: CellStyle) -> list[tuple[str, str, bool]]:
    """Return name, label and presence of each column that a reader may choose."""
    shown = asked.columns or section.columns
    return [
        (name, label_of(look.texts, name, section.resource.noun), name in shown)
        for name in section.offered
        if name != section.columns[0]
    ]


def _scoped(section: ResourcePages, asked: Asked, look: CellStyle) -> list[tuple[str, str, str]]:
    """Return label, name and removal of each filter by an id that the list has."""
    return [
        (
            label_of(look.texts, name),
            inert(look.names.get(text.lower(), text)),
            asked.only(name, ""),
        )
        for name, text in asked.filters.items()
        if section.resource.offered[name].kind == "id"
    ]


def _filters(
    section: ResourcePages, look: CellStyle
) -> list[tuple[Filter, str, list[tuple[str, str]]]]:
    """Return the filters of the form, each with its label and its values with their words."""
    words = Words(look.texts, section.resource)
    filters = []
    for offered in section.resource.filters:
        if offered.kind == "id" or offered is section.tabs:
            continue
        allowed = offered.allowed or (("true", "false") if offered.kind == "boolean" else ())
        values = [(value, words.value(offered.name, value)) for value in allowed]
        filters.append((offered, words.filter(offered.name), values))
    return filters
