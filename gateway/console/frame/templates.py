"""The templates of the console: their filters, and what each page has."""

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import aiohttp_jinja2
import jinja2
from aiohttp import web

from gateway.console.frame import display, static_files
from gateway.console.frame.guard import Visitor
from gateway.console.frame.troubles import Troubles
from gateway.console.texts import ENGLISH, translate
from gateway.server.app_keys import CONFIG, DB

FOLDER = Path(__file__).parents[1] / "templates"
ENVIRONMENT = web.AppKey("CONSOLE_TEMPLATES", jinja2.Environment)
TROUBLES = web.RequestKey("CONSOLE_TROUBLES", Troubles)


# It is the same for every application, and each environment compiles the templates once.
@cache
def environment() -> jinja2.Environment:
    """Return the environment of the templates."""
    files = static_files.files()
    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    engine.globals.update(
        t=partial(translate, ENGLISH),
        static=lambda name: f"/console/static/{name}?v={files[name][1]}",
    )
    engine.filters.update(
        took=display.took,
        percent=display.percent,
        lasting=display.lasting,
        size=display.size,
        reais=display.reais,
        browser=display.browser,
        inert=display.inert,
        breakable=display.breakable,
        exact=display.exact,
        pretty=display.pretty,
    )
    return engine


def render(
    request: web.Request,
    visitor: Visitor | None,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
) -> web.Response:
    """Render a template as a response."""
    now = request.app[DB].clock.wall()
    t = partial(translate, ENGLISH)
    done = request.query.get("done", "")
    values = {
        "visitor": visitor,
        "csrf": visitor.csrf if visitor else "",
        "session": visitor.session if visitor else None,
        "service": request.app[CONFIG].service.name,
        "path": request.path,
        "done": f"done.{done}" if f"done.{done}" in ENGLISH else None,
        "when": lambda micros: display.when(micros, now, t),
        "now": now,
        "troubles": request.get(TROUBLES, Troubles()),
    }
    return aiohttp_jinja2.render_template(
        template, request, values | dict(context or {}), app_key=ENVIRONMENT, status=status
    )
