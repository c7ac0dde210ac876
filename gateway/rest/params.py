"""Parses query parameters and request headers into typed values.

Only an invalid `cursor`, `sort` or `updatedSince` is refused, and a bound of the calendar; filters
that cannot match give an empty list.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from gateway.records.actions import ANY
from gateway.records.audit import Actor
from gateway.records.cursors import place_of
from gateway.records.errors import Fault, Refusal
from gateway.records.idempotency import Once
from gateway.records.query import LIMIT, MOST, Query
from gateway.records.resource import Kind, Resource
from gateway.records.values import cnpj, dates, formats, numbers
from gateway.records.values.formats import Format, Wrong
from gateway.records.values.strictjson import InvalidJson, decode
from outbox.ids import is_id

LARGEST = 2**63 - 1
BOUNDS = ("from", "to")
NO_ID = "0" * 24
"""In place of the id that a path has not."""
_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")


def query_of(resource: Resource, parameters: Mapping[str, str]) -> Query:
    """Return the Query of a request. Raises validation_error for cursor, sort and updatedSince."""
    page, limit = window(parameters)
    query = Query(page=page, limit=limit)
    if not parameters:
        return query
    _narrow(query, resource, parameters)
    since = parameters.get("updatedSince")
    if since is not None:
        query.since = bound(since.strip())
        if query.since is None:
            raise refused(
                "updatedSince", "Send an ISO 8601 date-time such as 2026-11-21T14:30:00Z."
            )
    if parameters.get("sort"):
        query.order = _order(resource, parameters["sort"])
    if parameters.get("cursor"):
        query.after = place_of(resource, query, parameters["cursor"])
        if query.after is None:
            raise refused(
                "cursor", "Send the nextCursor of the previous page with the same parameters."
            )
    return query


def window(parameters: Mapping[str, str], limit: int = LIMIT, most: int = MOST) -> tuple[int, int]:
    """Return `page` and `limit`; the argument `limit` is the default, `most` the maximum."""
    return _positive(parameters.get("page"), 1), min(
        _positive(parameters.get("limit"), limit), most
    )


def bound(text: str) -> int | dates.Day | None:
    """Return an instant or a day, or None when the text is invalid.

    A plus without percent-encoding arrives as a space.
    """
    instant = dates.parse(text)
    if instant is None:
        instant = dates.parse("+".join(text.rsplit(" ", 1)))
    return dates.Day(instant) if instant is not None and dates.is_day(text) else instant


def expected_of(if_match: str | None) -> frozenset[str] | None:
    """Return the tags of If-Match without quotes, or None without the header."""
    if if_match is None:
        return None
    # RFC 9110 13.1.1: strong comparison, so a weak tag never matches.
    tags = [tag.strip() for tag in if_match.split(",")]
    if ANY in tags:
        return frozenset({ANY})
    quoted = {tag[1:-1] for tag in tags if len(tag) > 1 and tag[0] == tag[-1] == '"'}
    # A quoted star is an ordinary tag, which no record has.
    return frozenset(quoted - {ANY})


def lines_of(request: web.Request, name: str) -> str | None:
    """Return the lines of a header as one list (RFC 9110 5.3), or None without the header."""
    lines = request.headers.getall(name, None)
    return None if lines is None else ", ".join(lines)


def once_of(actor: Actor, request: web.Request, body: bytes) -> Once | None:
    """Return the use of the Idempotency-Key, or None without one. Raises validation_error.

    A caller without the scope `write` gets None, as does an `id` in the path that is none: the unit
    refuses both, and sees no stored response. Not each such text can be stored.
    """
    key = request.headers.get("Idempotency-Key")
    if key is None or "write" not in actor.scopes or not is_id(request.match_info.get("id", NO_ID)):
        return None
    if _KEY.fullmatch(key) is None:
        message = "Send an Idempotency-Key of 1 to 255 printable ASCII characters."
        raise Refusal(
            "validation_error",
            message,
            faults=[Fault("Idempotency-Key", "invalid_header", message)],
        )
    operation = f"{request.method} {request.path}"
    return Once(actor.owner_id, key, operation, hashlib.sha256(body).digest())


def refused(name: str, message: str) -> Refusal:
    """Return the refusal of a query parameter."""
    fault = Fault(name, "invalid_parameter", message)
    return Refusal("validation_error", fault.sentence, faults=[fault])


def _narrow(query: Query, resource: Resource, parameters: Mapping[str, str]) -> None:
    query.search = parameters.get("search", "").strip()
    # Text that the database cannot store matches nothing.
    query.nothing = not _is_text(query.search)
    if "ids" in parameters:
        query.ids = [i.strip().lower() for i in parameters["ids"].split(",") if is_id(i.strip())]
    values = {}
    for offered in resource.filters:
        text = parameters.get(offered.name)
        # Forms send an empty bound for one that is left out.
        if text is None or (not text and offered.kind in BOUNDS):
            continue
        try:
            values[offered.name] = READ[offered.kind](text)
        except Wrong:
            query.nothing = True
        query.nothing = query.nothing or not _is_text(text)
    query.filters = values


def _json(form: Format) -> Callable[[str], Any]:
    """Return a function that reads text as JSON: a number, true, false."""

    def read(text: str) -> Any:
        try:
            value = decode(text.encode(errors="replace"))
        except InvalidJson as error:
            raise Wrong("wrong_type", str(error)) from None
        return form.accept(value)

    return read


def _bound(text: str) -> int | dates.Day:
    instant = bound(text)
    if instant is None:
        raise Wrong("invalid_date", "Send an ISO 8601 date or date-time.")
    return instant


def _cnpj(text: str) -> str:
    """Return the CNPJ without mask, so that a search matches any spelling."""
    normal = cnpj.normal(text)
    if normal is None:
        raise Wrong("invalid_cnpj", "Send a CNPJ.")
    return normal


READ: Mapping[Kind, Callable[[str], Any]] = {
    "text": str,
    "id": str,
    "boolean": _json(formats.boolean()),
    "money": _json(numbers.money()),
    "cnpj": _cnpj,
    "from": _bound,
    "to": _bound,
}
"""The parser of a filter's text, by kind. Raises Wrong when no record can match."""


def _positive(text: str | None, default: int) -> int:
    if text is None or not (text.isascii() and text.isdigit()):
        return default
    digits = text.lstrip("0")
    # A larger number than the database takes becomes the largest it takes.
    return min(int(digits[:20]), LARGEST) if digits else default


def _order(resource: Resource, text: str) -> list[tuple[str, bool]]:
    """Parse `-createdAt,name` into names, each with whether it is descending."""
    offered = [sort.name for sort in resource.sorts]
    keys: list[tuple[str, bool]] = []
    for part in text.split(","):
        name = part.strip()
        if name.removeprefix("-") not in offered:
            names = ", ".join(offered)
            raise refused("sort", f"Sort by {names}; a leading minus sorts in descending order.")
        keys.append((name.removeprefix("-"), name.startswith("-")))
    return keys


def _is_text(value: str) -> bool:
    """Return whether PostgreSQL accepts the text as a parameter."""
    if "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
