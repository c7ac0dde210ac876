"""Reads what the address of a list asks for, and writes the addresses of its other forms."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from re import ASCII
from re import compile as pattern
from typing import Any
from urllib.parse import urlencode

from multidict import MultiMapping

from gateway.console.layout import typed_numbers
from gateway.records import cursors
from gateway.records.places import Place
from gateway.records.query import Query
from gateway.records.resource import Filter, Resource
from gateway.records.values import cnpj, dates, numbers, written_numbers
from gateway.records.values.formats import Wrong
from gateway.texts import Texts
from outbox.ids import is_id

LIMIT = 25
LIMITS = (25, 50, 100)
LONGEST = 200
"""Characters of a search or a filter."""
MOST_COUNTED = 1_000
"""Records of a narrowed list that are counted; its page says that there are more."""
MOST_PAGES = 400
"""Pages of a list by number."""
NEWEST = "-createdAt"
CURSOR = pattern("[0-9A-Za-z_-]{1,4000}", ASCII)
_MONEY = numbers.money()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A list as its address asks for it; what says nothing is left out."""

    resource: Resource
    path: str
    filters: Mapping[str, str]
    """The texts of the filters by their names."""
    search: str
    sort: str
    """A name of `resource.sorts`, with a minus when it is descending."""
    limit: int
    columns: Sequence[str]
    """The chosen columns; empty: the usual ones."""
    after: str
    before: str
    page: int
    selecting: bool
    texts: Texts
    """In whose language the amounts of filters are."""
    tabs: str
    """The name of the filter of the tabs."""

    @property
    def kept(self) -> list[tuple[str, str]]:
        """The parameters that the form of the list does not show, but keeps."""
        offered = self.resource.offered
        said = [
            (name, text)
            for name, text in self.filters.items()
            if name == self.tabs or offered[name].kind == "id"
        ]
        return [*said, ("sort", self.sort)] if self.sort != NEWEST else said

    @property
    def chosen(self) -> bool:
        """Whether the form shows another choice than the usual one."""
        shown = len(self.filters) > len([one for one in self.kept if one[0] != "sort"])
        return shown or self.limit != LIMIT or bool(self.columns)

    @property
    def narrowed(self) -> bool:
        """Whether the list leaves records out."""
        return bool(self.filters or self.search)

    @property
    def numbered(self) -> bool:
        """Whether this page is one by its number."""
        return self.sort != NEWEST and not (self.after or self.before)

    @property
    def placed(self) -> bool:
        """Whether this is another page than the first."""
        return bool(self.after or self.before or self.page > 1)

    def query(self) -> Query:
        """Return the request of the list."""
        asked = Query(
            limit=self.limit, search=self.search, anywhere=True, page=self.page,
            count_to=MOST_COUNTED + 1,
        )  # fmt: skip
        values: dict[str, Any] = {}
        for name, text in self.filters.items():
            try:
                values[name] = READ[self.resource.offered[name].kind](self._plain(name, text))
            except Wrong:
                asked.nothing = True
        asked.filters = values
        if self.sort != NEWEST:
            asked.order = [(self.sort.removeprefix("-"), self.sort.startswith("-"))]
        asked.after, asked.before = (
            cursors.place_of(self.resource, asked, text) if text else None
            for text in (self.after, self.before)
        )
        return asked

    def _plain(self, name: str, text: str) -> str:
        """Return the text of a filter as a program would send it."""
        is_money = self.resource.offered[name].kind == "money"
        return typed_numbers.plain(text, self.texts) if is_money else text

    def beyond(self, **places: Place) -> str:
        """Return the address of the page that `after` or `before` a place is."""
        query = self.query()
        return self.to(
            **{name: cursors.text_of(self.resource, query, at) for name, at in places.items()}
        )

    def to(self, **changes: Any) -> str:
        """Return the address of this list with changes; it begins with the first page."""
        first: dict[str, Any] = {"after": "", "before": "", "page": 1}
        return replace(self, **{**first, **changes}).address

    def only(self, name: str, text: str) -> str:
        """Return the address with this filter, or without it when the text is empty."""
        others = {one: value for one, value in self.filters.items() if one != name}
        return self.to(filters={**others, **({name: text} if text else {})})

    def sorted_by(self, name: str, first: str) -> str:
        """Return the address in the order of `name`; the second click turns it round."""
        turned = {name: f"-{name}", f"-{name}": name}
        return self.to(sort=turned.get(self.sort, f"{first}{name}"))

    @property
    def address(self) -> str:
        """The address of this list."""
        query = self.text
        return f"{self.path}?{query}" if query else self.path

    @property
    def text(self) -> str:
        """The query of the address."""
        return urlencode(self.pairs)

    @property
    def exported(self) -> str:
        """The query of the export of the same list: filters, search and order."""
        order = [("sort", self.sort)] if self.sort != NEWEST else []
        search = [("search", self.search)] if self.search else []
        return urlencode([*self.filters.items(), *search, *order])

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The parameters of the address."""
        said = [*self.filters.items(), ("search", self.search)]
        said.append(("sort", self.sort if self.sort != NEWEST else ""))
        said.append(("limit", str(self.limit) if self.limit != LIMIT else ""))
        said += [("column", name) for name in self.columns]
        said += [("after", self.after), ("before", self.before)]
        said.append(("page", str(self.page) if self.page > 1 else ""))
        said.append(("select", "1" if self.selecting else ""))
        return [(name, text) for name, text in said if text]


def asked(
    resource: Resource,
    path: str,
    query: MultiMapping[str],
    texts: Texts,
    *,
    tabs: str = "",
    columns: Sequence[str] = (),
    usual: Sequence[str] = (),
) -> Asked:
    """Return what an address asks for; nothing is refused.

    `columns` are those it may name; when it names the `usual` ones it says nothing.
    """
    # The filter of the tabs is the last in every address.
    offered = sorted(resource.filters, key=lambda one: one.name == tabs)
    said = {one.name: text_of(query.get(one.name, "")) for one in offered}
    filters = {one.name: said[one.name] for one in offered if _says(one, said[one.name])}
    sort = query.get("sort", "")
    sorts = {one.name for one in resource.sorts}
    page, limit = query.get("page", ""), query.get("limit", "")
    sort = sort if sort.removeprefix("-") in sorts else NEWEST
    default = sort == NEWEST
    named = [name for name in columns if name in query.getall("column", [])]
    return Asked(
        resource=resource, path=path, filters=filters, sort=sort, texts=texts, tabs=tabs,
        columns=() if set(named) == set(usual) else named,
        search=text_of(query.get("search", "")) if resource.search else "",
        limit=int(limit) if limit in map(str, LIMITS) else LIMIT,
        after=_cursor(query.get("after", "")),
        before=_cursor(query.get("before", "")) if "after" not in query else "",
        page=min(int(page), MOST_PAGES) if page.isdecimal() and page.isascii() and len(page) < 5
        and int(page) and not default else 1,
        selecting="select" in query,
    )  # fmt: skip


def text_of(text: str) -> str:
    """Return what a reader typed, as every engine can store it."""
    text = text.strip()[:LONGEST].replace("\0", "")
    return text.encode("utf-8", "ignore").decode()


def _says(offered: Filter, text: str) -> bool:
    """Return whether a text is a value of the filter."""
    if not text or (offered.allowed and text not in offered.allowed):
        return False
    if offered.kind == "boolean":
        return text in ("true", "false")
    return offered.kind != "id" or is_id(text)


def _cursor(text: str) -> str:
    return text if CURSOR.fullmatch(text) else ""


def _money(text: str) -> Any:
    # A text that is no number is refused as one.
    return _MONEY.accept(written_numbers.read(text, written_numbers.POINT))


def _day(text: str) -> Any:
    micros = dates.parse(text)
    if micros is None:
        raise Wrong("invalid_date", "Send a date.")
    return dates.Day(micros) if dates.is_day(text) else micros


def _cnpj(text: str) -> str:
    normal = cnpj.normal(text)
    if normal is None:
        raise Wrong("invalid_cnpj", "Send a CNPJ.")
    return normal


READ: Mapping[str, Callable[[str], Any]] = {
    "text": str, "id": str.lower, "boolean": lambda text: text == "true", "money": _money,
    "cnpj": _cnpj, "from": _day, "to": _day,
}  # fmt: skip
"""The reader of a filter's text, by its kind. Raises Wrong when no record can match."""
