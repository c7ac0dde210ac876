"""Decides which paths a key for chosen resources may reach."""

from collections.abc import Sequence
from typing import Final

from aiohttp import web

from gateway.domain.catalogue import BY_PLURAL
from gateway.records.audit import Actor
from gateway.records.errors import Refusal

OTHERS: Final = frozenset({"reports", "deliveries", "webhooks"})
"""Parts of the API beside the resources that a key can be for."""
BULK: Final = frozenset({"export", "import", "digest"})
OWN: Final = "me"
"""What each key can read."""
BEYOND: Final = frozenset({"data-export", "erase"})
"""Operations of one record that reach the data of others."""


def must_reach(request: web.Request, caller: Actor) -> None:
    """Raise forbidden when a key for chosen resources may not reach the path of a request."""
    if request.path == f"/api/{OWN}" and request.method in ("GET", "HEAD"):
        return
    areas = areas_of(request.path)
    named = request.query_string and "include" in request.query
    if named or not areas or not all(reaches(caller, area) for area in areas):
        allowed = ", ".join(sorted(caller.resources or ()))
        target = "include" if named else " and ".join(areas) or "this path"
        text = f"This API key is only for {allowed}, not for {target}; use a key for all resources."
        raise Refusal("forbidden", text)


def reaches(caller: Actor, area: str) -> bool:
    """Return whether a caller may reach a part of the API."""
    return caller.resources is None or area in caller.resources


def areas_of(path: str) -> Sequence[str]:
    """Return the parts of the API that a path reaches; none for what needs a key for all."""
    name, _, rest = path.removeprefix("/api/").partition("/")
    if name in BULK:
        name = rest.partition(".")[0]
    verb = rest.rpartition("/")[2]
    if verb in BEYOND or (name not in BY_PLURAL and name not in OTHERS):
        return ()
    # The invoice of a quote.
    return (name, "invoices") if (name, verb) == ("quotes", "convert") else (name,)
