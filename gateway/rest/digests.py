"""Handles digests, by which a receiver compares its copy of the records."""

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.records import digests
from gateway.records.digests import FIRST, PARTS, USUAL_PARTS, Part
from gateway.records.resource import Resource
from gateway.records.values import numbers
from gateway.records.values.schemas import Id
from gateway.rest.auth import authenticate
from gateway.rest.document import describe, shapes
from gateway.rest.document.operations import Operation
from gateway.rest.errors import JSON
from gateway.rest.params import refused
from gateway.rest.scans import scan
from outbox.ids import is_id


class DigestPart(Struct, frozen=True, rename={"start": "from", "end": "to"}):
    """The records with ids from `from` to before `to`; without `to`, all later ones.

    `first` and `last` are the ids of the first and the last one, absent when there is none.
    """

    start: Id
    count: int
    digest: str
    end: Id | UnsetType = UNSET
    first: Id | UnsetType = UNSET
    last: Id | UnsetType = UNSET


class Digest(Struct, frozen=True):
    """The parts of a range. With `next`, records are left: ask again with it as `from`."""

    parts: list[DigestPart]
    next: Id | UnsetType = UNSET


EXAMPLE = Digest(
    [
        DigestPart(
            FIRST, 412, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            first=shapes.example_id("contact"), last=shapes.example_id("contact"),
        )
    ]
)  # fmt: skip


def digest_of(resource: Resource) -> Operation:
    """Return GET /api/digest/{plural}."""

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        query = request.query
        start, end = _id(query.get("from", ""), "from") or FIRST, _id(query.get("to", ""), "to")
        if end is not None and end <= start:
            raise refused("to", "Send an id that is greater than `from`.")
        digest = await scan(
            request, caller, "reported", digests.digest, resource,
            start=start, end=end,
            parts=_parts(query.get("parts", "")),
        )  # fmt: skip
        body = Digest([_shown(part) for part in digest.parts], digest.onward or UNSET)
        return web.Response(
            body=msgspec.json.encode(body),
            headers={"Content-Type": JSON, "Cache-Control": "no-store"},
        )

    return describe.digest(resource, shapes.struct(EXAMPLE))(handle)


def _id(text: str, name: str) -> str | None:
    text = text.strip()
    if text and not is_id(text):
        raise refused(name, "Send an id: 24 hexadecimal digits.")
    return text.lower() or None


def _parts(text: str) -> int:
    text = text.strip()
    if not text:
        return USUAL_PARTS
    if (parts := numbers.typed(text, 1, PARTS)) is None:
        raise refused("parts", f"Send a whole number from 1 to {PARTS}.")
    return parts


def _shown(part: Part) -> DigestPart:
    return DigestPart(
        part.start, part.count, part.digest, part.end or UNSET, part.first or UNSET,
        part.last or UNSET,
    )  # fmt: skip
