"""Finds which pages of other rooms the pages of records may lead to: those that have a route."""

from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web

EXPORT = "/console/export/{plural}.csv"
IMPORT = "/console/import/{plural}"
IMPORTED = ("contacts", "companies", "products")
PRIVACY = "/console/privacy"


@dataclass(frozen=True, slots=True)
class Offers:
    """The addresses of further pages; an empty text when there is none."""

    exported: str = ""
    imported: str = ""
    privacy: str = ""


def of(request: web.Request, plural: str) -> Offers:
    """Return what is offered beside the records of a resource."""
    known = routed(request.app)
    return Offers(
        EXPORT.format(plural=plural) if _has(known, "/console/export/") else "",
        IMPORT.format(plural=plural)
        if plural in IMPORTED and _has(known, "/console/import/")
        else "",
        PRIVACY if plural == "contacts" and PRIVACY in known else "",
    )


def routed(app: web.Application) -> Sequence[str]:
    """Return the addresses that have a route, as they are written with their parameters."""
    paths = app.get(ROUTED)
    return paths if paths is not None else [one.canonical for one in app.router.resources()]


def _has(known: Sequence[str], start: str) -> bool:
    return any(one.startswith(start) for one in known)


ROUTED = web.AppKey("CONSOLE_ROUTED", list[str])
