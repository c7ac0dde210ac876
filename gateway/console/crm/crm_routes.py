"""The routes of the pages on which an owner moves records on."""

from collections.abc import Callable
from functools import partial
from typing import Any

from gateway.console.crm import (
    board,
    calendar,
    company,
    customer_page,
    lines,
    pipeline,
    printing,
    sending_page,
)
from gateway.console.layout.pages import Handler, action, page, upload
from gateway.console.records import verbs
from gateway.domain.sales import document_links, logos, sheets

Add = Callable[[str, Handler], Any]


def add(get: Add, post: Add) -> None:
    """Add the routes; fixed paths come before those with an id."""
    get(board.PATH, page(board.show))
    get(calendar.PATH, page(calendar.month))
    for view in (*calendar.VIEWS, calendar.OF_DAY):
        get(f"/console/tasks/due/{view}", page(partial(calendar.due, view)))
    get("/console/deals/{id}/move", page(board.move_page))
    post("/console/deals/{id}/move", action(board.move))
    for verb in verbs.VERBS:
        if verb.asks:
            get(verb.path, page(partial(verbs.ask, verb)))
        post(verb.path, action(partial(verbs.act, verb)))
    get(pipeline.PATH, page(pipeline.show))
    post(pipeline.PATH, action(pipeline.save))
    get(company.PATH, page(company.show))
    post(company.PATH, action(company.save))
    post(f"{company.PATH}/logo", upload(company.upload_logo, logos.MOST_BYTES))
    post(f"{company.PATH}/logo/remove", action(company.remove_logo))
    for resource in sheets.DOCUMENTS.values():
        document_path = f"/console/{resource.plural}/{{id}}"
        get(f"{document_path}/print", page(partial(printing.show, resource)))
        get(f"{document_path}/pdf", page(partial(printing.file, resource)))
        get(f"{document_path}/send", page(partial(sending_page.show, resource)))
        post(f"{document_path}/send", action(partial(sending_page.send, resource)))
    get(document_links.PATH, page(customer_page.show, public=True))
    post(document_links.PATH, action(customer_page.decide, public=True))
    get(f"{document_links.PATH}/pdf", page(customer_page.file, public=True))
    for kind in lines.KINDS:
        form = action(partial(lines.edit, kind))
        post(f"/console/{kind.resource.plural}/lines", form)
        post(f"/console/{kind.resource.plural}/{{id}}/lines", form)
