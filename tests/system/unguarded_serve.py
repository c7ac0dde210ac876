"""The product with one guard turned off, named by `UNGUARDED`.

Run in place of `python -m gateway`: the attack that the guard is for must then succeed.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

from aiohttp import web

from gateway.__main__ import main
from gateway.console.frame import forms
from gateway.console.frame.forms import Form
from gateway.graphql import documents, limits
from gateway.records import query, statements
from gateway.records.values import strictjson
from gateway.rest import body
from gateway.server.http import admission, inbound
from gateway.server.http.admission import Budget


async def any_form(request: web.Request) -> Form:
    """Accepts a form of any kind and size, in the character set that it names."""
    sent = await request.post()
    texts = {
        name: [value for value in sent.getall(name) if isinstance(value, str)] for name in sent
    }
    return Form(texts)


def take_any_form() -> None:
    """Let aiohttp read any form."""
    forms.read = any_form


def never_end() -> None:
    """Read lists as a whole, whatever their size, without a memory budget."""
    statements.BESIDE = 1 << 62
    query.MOST = 1_000
    Budget.take = lambda self, holder, size, *, must=False: True  # type: ignore[method-assign]
    Budget.give = lambda self, holder, size: None  # type: ignore[method-assign]


def take_any_head() -> None:
    """Allow heads of any length."""
    inbound.HEAD_BYTES = 1 << 62
    never_end()


def keep_all_places() -> None:
    """Let connections keep their places, and reserve none for probes."""
    inbound.Connection.waited_since = property(lambda _: None)  # type: ignore[method-assign,assignment]
    admission.PROBES = 0
    inbound.PROBE = re.compile(b"$^")


def take_any_number_of_values() -> None:
    """A body holds as many values as fit, and nobody waits their turn."""
    strictjson.MOST_VALUES = 1 << 62
    body.IN_TURN_BYTES = 1 << 62


def take_any_document() -> None:
    """Validate documents of any size."""
    vars(documents).update(must_be_short=lambda _: None, TOKENS=None)
    for limit in (
        "DEPTH", "ALIASES", "FIELDS", "MUTATIONS", "DIRECTIVES", "OPERATIONS", "FRAGMENTS",
        "SHARED", "PAIRS", "VISITS",
    ):  # fmt: skip
        setattr(limits, limit, 1 << 62)


GUARDS: dict[str, Callable[[], None]] = {
    "forms": take_any_form,
    "values": take_any_number_of_values,
    "budgets": never_end,
    "heads": take_any_head,
    "places": keep_all_places,
    "documents": take_any_document,
}

if __name__ == "__main__":
    GUARDS[os.environ["UNGUARDED"]]()
    sys.exit(main())
