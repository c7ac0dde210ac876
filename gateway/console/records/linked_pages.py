"""Finds which pages of other rooms the pages of records may lead to: those that have a route."""

from dataclasses import dataclass

from aiohttp import web

from gateway.console.layout.menu import routed
from gateway.server.images.images import IMAGES

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
    images: bool = False
    """Whether the installation stores images."""


def of(request: web.Request, plural: str) -> Offers:
    """Return what is offered beside the records of a resource."""
    known = routed(request.app)
    return Offers(
        EXPORT.format(plural=plural) if _has(known, "/console/export/") else "",
        IMPORT.format(plural=plural)
        if plural in IMPORTED and _has(known, "/console/import/")
        else "",
        PRIVACY if plural == "contacts" and PRIVACY in known else "",
        request.app[IMAGES].stored,
    )


def _has(known: frozenset[str], start: str) -> bool:
    return any(one.startswith(start) for one in known)
