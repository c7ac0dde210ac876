"""The menu: three groups of pages, and whose page is shown. A page without a route is left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from aiohttp import web

from gateway.console.layout.display import words_of
from gateway.domain.catalogue import RESOURCES
from gateway.texts import Texts

GROUPS = {
    "crm": (
        "contacts", "companies", "deals", "tasks", "activities", "quotes", "invoices", "imports",
        "privacy",
    ),
    "shop": (
        "stores", "orders", "products", "categories", "coupons", "discount-modals", "ebooks",
        "clients", "reviews",
    ),
    "developers": ("webhooks", "deliveries", "events", "keys", "audit", "checkpoints"),
}  # fmt: skip
"""The first words of the addresses under /console, by group, in the order of the menu.

Resources that no group names are in the first.
"""
_NAMED = {name for names in GROUPS.values() for name in names}
_OTHERS = tuple(one.plural for one in RESOURCES if one.plural not in _NAMED)


@dataclass(frozen=True, slots=True)
class Item:
    """A link of the menu."""

    path: str
    text: str
    current: bool


@dataclass(frozen=True, slots=True)
class Group:
    """A group of links; it is current when one of them is."""

    name: str
    items: Sequence[Item]

    @property
    def current(self) -> bool:
        """Whether the page belongs to it."""
        return any(one.current for one in self.items)


def menu(request: web.Request, texts: Texts) -> list[Group]:
    """Return the groups in the reader's language."""
    here = request.path
    return [
        Group(
            name,
            [Item(path, text, here == path or here.startswith(f"{path}/")) for path, text in links],
        )
        for name, links in _links(routed(request.app), texts)
    ]


@lru_cache(maxsize=20)
def _links(known: frozenset[str], texts: Texts) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        (
            group,
            [
                (f"/console/{name}", text_of(texts, name))
                for name in (*names, *(_OTHERS if group == "crm" else ()))
                if f"/console/{name}" in known
            ],
        )
        for group, names in GROUPS.items()
    ]


def text_of(texts: Texts, name: str) -> str:
    """Return the text of a link: its own, or the title of its page."""
    return texts.get(f"nav.{name}", texts.get(f"{name}.title", words_of(name)))


_ROUTED = web.AppKey("CONSOLE_ROUTED", dict[str, frozenset[str]])


def set_up(app: web.Application) -> None:
    """Give an application the place of its addresses, which have all their routes later."""
    app[_ROUTED] = {}


def routed(app: web.Application) -> frozenset[str]:
    """Return the addresses that have a route, as they are written with their parameters."""
    known = app[_ROUTED]
    if "all" not in known:
        known["all"] = frozenset(one.canonical for one in app.router.resources())
    return known["all"]
