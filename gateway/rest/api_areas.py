"""Decides which paths a key for chosen resources may reach."""

from typing import Final

from aiohttp import web

from gateway.domain.catalogue import BY_PLURAL
from gateway.records.access import Actor
from gateway.records.errors import Refusal

OTHERS: Final = frozenset({"reports", "deliveries", "webhooks"})
"""Parts of the API beside the resources that a key can be for."""
BULK: Final = frozenset({"export", "import", "digest"})
FREE: Final = frozenset({"me"})


def must_reach(request: web.Request, caller: Actor) -> None:
    """Raise forbidden when a key for chosen resources may not reach the path of a request."""
    area = area_of(request.path)
    named = request.query.get("include", "") if request.query_string else ""
    if area in FREE and not named:
        return
    if named or area is None or not reaches(caller, area):
        chosen = ", ".join(sorted(caller.resources or ()))
        what = "include" if named else area or "this path"
        text = f"This API key is only for {chosen}, not for {what}; use a key for all resources."
        raise Refusal("forbidden", text)


def reaches(caller: Actor, area: str) -> bool:
    """Return whether a caller may reach a part of the API."""
    return caller.resources is None or area in caller.resources


def area_of(path: str) -> str | None:
    """Return the part of the API that a path belongs to; None for one of none."""
    name, _, rest = path.removeprefix("/api/").partition("/")
    if name in BULK:
        name = rest.partition(".")[0]
    return name if name in BY_PLURAL or name in OTHERS or name in FREE else None
