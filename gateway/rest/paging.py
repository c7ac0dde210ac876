"""Reads the place of a page from a query, and refuses parameters of paging that a list lacks.

A client that walks a list by a parameter that the list ignores would read its first page for ever.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from gateway.records.errors import Refusal
from gateway.records.query import LIMIT
from gateway.records.values.schemas import Schema
from gateway.rest.document.operations import Operation, Parameter
from gateway.rest.params import refused, window

T = TypeVar("T")
CURSOR, AFTER = "cursor", "after"
PLACES = (CURSOR, AFTER)
"""The two names of the place where a page of a log starts; the second is the older one."""
_OF_PAGES = re.compile(
    "(?:page|paging|pagination)(?:s|no|nr|num|number|index|idx|size|limit|length|count|offset|start"
    "|token|cursor|after|before|next|marker|key)?"
    "|(?:next|prev|previous|current)(?:page|cursor|token|pagetoken|marker|link|key|url|offset)?"
    "|(?:items|results|rows|records|entries|limit)?perpage|cursor|offset|skip|top|take|limit|size"
    "|max(?:results?|items|records|rows|pagesize|keys|entries)|batchsize|chunksize|resultsize"
    "|(?:start|begin)(?:index|at|from|key|after|token|offset|cursor|row|record|position)"
    "|(?:starting|ending|since|until|min|max|last|first)(?:after|before|at|id|cursor|seenid|key)"
    "|(?:after|before)(?:id|cursor|key|token)?|cursor(?:id|mark|token|after|before|next)"
    "|(?:exclusivestart|lastevaluated|scroll|sync)(?:key|id|token)?|marker|(?:next)?marker"
    "|continuation(?:token|key|id)?|bookmark|searchafter"
)
"""Names of paging in other APIs, lower case and without signs."""


def looks_like_paging(name: str) -> bool:
    """Return whether a parameter's name is one of paging, in any spelling: `page[size]`, `$skip`.

    Of a name in brackets, both parts together count.
    """
    return _OF_PAGES.fullmatch("".join(filter(str.isalnum, name)).lower()) is not None


def refuses(operation: Operation, unknown: Iterable[str]) -> bool:
    """Return whether an operation is a list and refuses one of these unknown parameters."""
    return operation.name.startswith("list") and any(map(looks_like_paging, unknown))


def must_be_known(operation: Operation, known: Collection[str], unknown: Sequence[str]) -> None:
    """Raise validation_error for an unknown parameter of paging in the query of a list."""
    if refuses(operation, unknown):
        raise _unknown(next(filter(looks_like_paging, unknown)), known)


def page_of(
    query: Mapping[str, str], valid: Callable[[str], bool], limit: int = LIMIT
) -> tuple[str, int]:
    """Return the place where a page starts, empty for the beginning, and its size.

    Raises validation_error for two different places, and for one that is not `valid`.
    """
    texts = {name: text for name in PLACES if (text := query.get(name, "").strip())}
    if len({*texts.values()}) > 1:
        raise refused(CURSOR, "Send either cursor or after; both are the place of the page.")
    for name, text in texts.items():
        if not valid(text):
            raise refused(name, "Send the nextCursor of the previous page.")
    return next(iter(texts.values()), ""), window(query, limit)[1]


def cut(rows: Sequence[T], limit: int, place: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """Return the page of a list that was read one row further, and the place of the next one."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], place(rows[limit - 1])


def places(schema: Schema, example: str, after: str = "") -> tuple[Parameter, Parameter]:
    """Return the parameters of the place; `after` describes the older one, if it takes more."""
    return (
        Parameter(CURSOR, schema, "The nextCursor of the previous page.", example),
        Parameter(AFTER, schema, after or "The same as `cursor`.", example),
    )


def _unknown(name: str, known: Collection[str]) -> Refusal:
    if CURSOR in known:
        takes = "This list takes cursor, the nextCursor of the previous page"
        takes += ", and page and limit." if "page" in known else ", and limit."
    elif "page" in known:
        takes = "This list takes page and limit."
    elif "limit" in known:
        takes = "This list has one page, of limit records."
    else:
        takes = "This list has one page, which is complete; remove the parameter."
    return refused(name, takes)
