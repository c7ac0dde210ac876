"""Reads the arguments of a connection and builds its value: edges, nodes, pageInfo, totalCount.

A cursor is the base64 of the list's order, the value that the order compares, and the id. It stays
valid when its record changes or goes.
"""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from gateway.records.errors import Fault
from gateway.records.places import Place
from gateway.records.query import MOST
from gateway.records.record import refusal
from gateway.records.slices import Slice, SliceRequest
from outbox.ids import is_id

NEWEST = "n"
"""The order of a list with the newest first, in its cursors."""
DEFAULT = 20
LONGEST_CURSOR = 2_048
_json = msgspec.json


def slice_request(
    args: Mapping[str, Any], order: str = NEWEST, *, text: bool = False
) -> SliceRequest:
    """Return what `first`, `after`, `last` and `before` select. Raises validation_error.

    `last` counts from the end, in place of `first`. `text`: the order compares texts.
    """
    size, last = args.get("last"), True
    if size is None:
        size, last = args.get("first"), False
    if size is None:
        size = DEFAULT
    field = "last" if last else "first"
    if not 0 <= size <= MOST:
        raise refusal([Fault(field, "out_of_range", f"Send a whole number from 0 to {MOST}.")])
    places = {name: _place(args.get(name), name, order, text) for name in ("after", "before")}
    return SliceRequest(size, last, **places)


def connection(
    page: Slice,
    request: SliceRequest,
    count: Callable[[], Awaitable[int]],
    order: str = NEWEST,
    show: Callable[[Any], Any] = lambda record: record,
) -> dict[str, Any]:
    """Return the value of a connection; `count` runs only when the client asks for totalCount."""
    nodes = [show(record) for record in page.records]
    cursors = [cursor(place, order) for place in page.places]
    first, last = (cursors[0], cursors[-1]) if cursors else (None, None)
    if page.end is not None:
        # The page may be short, or even empty: more follows beyond its last record.
        end = cursor(page.end, order)
        first, last = (end, last) if request.last else (first, end)
    before, after = request.before is not None, request.after is not None
    return {
        "edges": [{"node": n, "cursor": c} for n, c in zip(nodes, cursors, strict=True)],
        "nodes": nodes,
        "pageInfo": {
            # The client took its cursor from a record beyond this side of the page.
            "hasNextPage": before if request.last else page.more,
            "hasPreviousPage": page.more if request.last else after,
            "startCursor": first,
            "endCursor": last,
        },
        "totalCount": lambda info: count(),
    }


def cursor(place: Place, order: str = NEWEST) -> str:
    """Return the cursor of a position."""
    plain = _json.encode([order, place.at, place.record_id])
    return urlsafe_b64encode(plain).decode().rstrip("=")


def _place(sent: str | None, field: str, order: str, text: bool) -> Place | None:
    if sent is None:
        return None
    decoded: Any = None
    if len(sent) <= LONGEST_CURSOR and sent.isascii():
        try:
            plain = urlsafe_b64decode(sent + "=" * (-len(sent) % 4))
            # Without lists in lists, however deep somebody has nested them.
            decoded = _json.decode(plain, type=list[int | str])
        except (ValueError, binascii.Error):
            decoded = None
    match decoded:
        case [str(kind), int(at), str(record_id)] if not text and abs(at) < 2**62:
            known = kind == order and is_id(record_id)
        case [str(kind), str(at), str(record_id)] if text and "\0" not in at:
            known = kind == order and is_id(record_id)
        case _:
            known = False
    if not known:
        raise refusal(
            [Fault(field, "invalid_cursor", "Send a cursor of this list, with the same orderBy.")]
        )
    return Place(decoded[1], decoded[2])
