"""Handles the checkpoints of the delivery log: list them, and make one now."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.domain.webhooks import checkpoints
from gateway.records.values import dates
from gateway.records.values.schemas import Instant
from gateway.rest import lists, paging
from gateway.rest.auth import authenticate
from gateway.rest.body import respond
from gateway.rest.document import shapes
from gateway.rest.document.describe import page_size
from gateway.rest.document.operations import operation
from gateway.rest.errors import JSON
from gateway.server.app_keys import DB, KEYRING
from outbox.queue.proof.chain_checkpoints import Checkpoint as Stored

Jws = Annotated[str, Meta(description="A compact JWS (RFC 7515) with EdDSA.")]


class Checkpoint(Struct, frozen=True, rename="camel"):
    """A signed note of where the logs of the caller's webhooks ended.

    `checkpoint` is a JWS by the key `keyId` of /.well-known/carteiro/keys, over the logs of so many
    `webhooks`.
    """

    number: int
    at: Instant
    key_id: str
    webhooks: int
    checkpoint: Jws


class Checkpoints(Struct, frozen=True, rename="camel"):
    """Checkpoints, newest first. Send `nextCursor` as `after` for the next page."""

    data: list[Checkpoint]
    next_cursor: str | UnsetType = UNSET


class NewCheckpoints(Struct, frozen=True):
    """The checkpoints that were made; none when no log has grown since the last ones."""

    data: list[Checkpoint]


EXAMPLE = Checkpoint(
    712, shapes.NOW, "oKIywvGUpTVTyxMQ3bwIIeQUudfr_CkLMjCE19ECD-U", 3,
    "eyJhbGciOiJFZERTQSJ9.eyJudW1iZXIiOjcxMn0.c2lnbmF0dXJl",
)  # fmt: skip


@operation(
    "listCheckpoints", "Webhooks", "List checkpoints of the delivery log",
    shapes.struct(Checkpoints([EXAMPLE])), headers=("Link",),
    description="One is made every hour in which the log of a webhook has grown, and kept as long "
    "as the log. Save them elsewhere: `carteiro verify --checkpoint` proves with them that no "
    "attempt was changed or removed.",
    parameters=(
        *paging.places({"type": "string"}, "712"),
        page_size(),
    ),
)  # fmt: skip
async def list_checkpoints(request: web.Request) -> web.Response:
    """GET /api/log/checkpoints: list the caller's checkpoints, newest first."""
    caller = await authenticate(request)
    after, limit = paging.page_of(request.query, _is_number)
    rows = await lists.read(
        request, checkpoints.listed, caller, int(after) if after else None, limit + 1
    )
    shown, cursor = paging.cut(rows, limit, lambda row: str(row.number))
    body = Checkpoints(
        [_shown(checkpoint) for checkpoint in shown], UNSET if cursor is None else cursor
    )
    headers = {"Content-Type": JSON, **lists.link(request, cursor)}
    return web.Response(body=msgspec.json.encode(body), headers=headers)


def _is_number(place: str) -> bool:
    return place.isascii() and place.isdigit() and len(place) < 19


@operation(
    "createCheckpoint", "Webhooks", "Make a checkpoint of the delivery log now",
    shapes.struct(NewCheckpoints([EXAMPLE])), status=201,
    description="An account with more than 200 webhooks gets several. A minute must have passed "
    "since the last one.",
    refusals=("rate_limited",),
)  # fmt: skip
async def create_checkpoint(request: web.Request) -> web.Response:
    """POST /api/log/checkpoints: make a checkpoint of what has grown since the last one."""
    caller = await authenticate(request)
    made = await checkpoints.take(request.app[DB], caller, request.app[KEYRING])
    return respond(NewCheckpoints([_shown(one) for one in made]), 201)


def _shown(one: Stored) -> Checkpoint:
    return Checkpoint(one.number, dates.show(one.created_at), one.key_id, one.webhooks, one.body)
