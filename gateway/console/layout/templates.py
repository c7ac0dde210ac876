"""The templates of the console: their filters, and what each page has."""

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import aiohttp_jinja2
import jinja2
from aiohttp import web

from gateway.console.layout import display, static_files, told_steps
from gateway.console.layout.guard import SignedIn
from gateway.console.layout.menu import menu
from gateway.console.layout.reader import READER
from gateway.console.layout.troubles import Troubles
from gateway.domain.images import uploads
from gateway.server.app_keys import DB
from gateway.server.installation import SITE
from gateway.texts import Texts
from outbox.sending.explained import Step

FOLDER = Path(__file__).parents[1] / "templates"
ENVIRONMENT = web.AppKey("CONSOLE_TEMPLATES", jinja2.Environment)
TROUBLES = web.RequestKey("CONSOLE_TROUBLES", Troubles)


@jinja2.pass_context
def _text(context: jinja2.runtime.Context, key: str, **values: Any) -> str:
    return str(context["reader"].texts(key, **values))


@jinja2.pass_context
def _told(context: jinja2.runtime.Context, sentence: str) -> str:
    return told_steps.told(context["reader"].texts, sentence)


@jinja2.pass_context
def _step_text(context: jinja2.runtime.Context, step: Step) -> str:
    return told_steps.step_text(context["reader"].texts, step)


@jinja2.pass_context
def _exact(context: jinja2.runtime.Context, micros: int) -> str:
    return str(context["reader"].exact(micros))


@jinja2.pass_context
def _word(context: jinja2.runtime.Context, value: str) -> str:
    section = context.get("section")
    noun = section.resource.noun if section is not None else ""
    return display.word_of(context["reader"].texts, value, noun)


def _format(name: str) -> Callable[..., str]:
    """Return the filter that formats as this method of the reader's language does."""

    @jinja2.pass_context
    def form(context: jinja2.runtime.Context, *values: Any) -> str:
        return str(getattr(context["reader"].texts, name)(*values))

    return form


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
        t=_text,
        option_word=_word,
        static=lambda name: f"/console/static/{name}?v={files[name][1]}",
    )
    engine.filters.update(
        **{
            name: _format(name)
            for name in ("took", "percent", "lasting", "size", "money", "number")
        },
        base64=lambda data: b64encode(data).decode("ascii"),
        exact=_exact,
        told=_told,
        step_text=_step_text,
        browser=display.browser,
        inert=display.inert,
        name_of=display.name_of,
        title_of=display.title_of,
        breakable=display.breakable,
        own_image=uploads.path_in,
        pretty=display.pretty,
    )
    return engine


def render(
    request: web.Request,
    visitor: SignedIn | None,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    status: int = 200,
) -> web.Response:
    """Render a template as a response."""
    now = request.app[DB].clock.wall()
    reader = request[READER]
    values = {
        "reader": reader,
        "visitor": visitor,
        "csrf": visitor.csrf if visitor else "",
        "session": visitor.session if visitor else None,
        "service": request.app[SITE].service,
        "path": request.path,
        "done": _done(request, reader.texts),
        "when": lambda micros: reader.when(micros, now),
        "now": now,
        "menu": menu(request, reader.texts) if visitor and visitor.session else (),
        "troubles": request.get(TROUBLES, Troubles()),
    }
    return aiohttp_jinja2.render_template(
        template, request, values | dict(context or {}), app_key=ENVIRONMENT, status=status
    )


def _done(request: web.Request, texts: Texts) -> str | None:
    """Return the text of what was done, which the address names; None when it names none."""
    key, count = f"done.{request.query.get('done', '')}", request.query.get("count", "")
    if key not in texts:
        return None
    counted = count.isascii() and count.isdigit() and len(count) < 10
    values = {"count": int(count)} if counted else {}
    try:
        return texts(key, **values)
    except KeyError:
        # Somebody has typed the address.
        return None
