"""The routes of the pages on which an owner moves records on."""

from collections.abc import Callable
from functools import partial
from typing import Any

from gateway.console.desk import board, calendar, lines, pipeline, printing
from gateway.console.frame.pages import Handler, action, page
from gateway.console.records import verbs

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
    for resource in printing.UNTIL:
        get(f"/console/{resource.plural}/{{id}}/print", page(partial(printing.show, resource)))
    for kind in lines.KINDS:
        form = action(partial(lines.edit, kind))
        post(f"/console/{kind.resource.plural}/lines", form)
        post(f"/console/{kind.resource.plural}/{{id}}/lines", form)
