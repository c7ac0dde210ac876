"""The banner of every page: which webhooks need somebody, and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from aiohttp import web

from gateway.console.layout.guard import SignedIn
from outbox.webhooks import Trouble, Troubled

SHOWN = 3
"""Webhooks that the banner names."""


@dataclass(frozen=True, slots=True)
class Troubles:
    """The webhooks that the banner names, by trouble; `more` is how many others there are."""

    named: Sequence[tuple[Trouble, Sequence[Troubled]]] = ()
    more: int = 0


NONE = Troubles()


def of(request: web.Request, visitor: SignedIn) -> Troubles:
    """Return the troubles to show; none on parts of pages, and none on a webhook's own page."""
    others = [one for one in visitor.troubled if one.id not in request.path]
    groups = groupby(others[:SHOWN], attrgetter("trouble"))
    return Troubles([(trouble, list(some)) for trouble, some in groups], len(others[SHOWN:]))
