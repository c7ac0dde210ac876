"""Handles what an owner does to many orders at once."""

from aiohttp import web
from msgspec import Struct, json

from gateway.domain.sales.order_batches import SELECTION, cancel_all
from gateway.records.errors import Fault
from gateway.records.record import refusal
from gateway.records.values.schemas import Id
from gateway.rest.auth import authenticate, charge
from gateway.rest.body import read_draft, respond
from gateway.rest.document import shapes
from gateway.rest.document.operations import operation
from gateway.server.app_keys import DB


class RefusedOrder(Struct, frozen=True):
    """An order that was not canceled, with the code and the message of its error."""

    id: Id
    code: str
    message: str


class CanceledOrders(Struct, frozen=True):
    """The ids of the orders that are canceled now, and those that were refused."""

    canceled: list[Id]
    refused: list[RefusedOrder]


EXAMPLE = CanceledOrders(
    [shapes.example_id("order")],
    [
        RefusedOrder(
            shapes.example_id("paid order"),
            "invalid_transition",
            "This order is paid and cannot become canceled; paid is final.",
        )
    ],
)


@operation(
    "cancelOrders", "Orders", "Cancel many orders", shapes.struct(EXAMPLE),
    headers=("X-Ignored-Fields",), body=shapes.new(SELECTION),
    description="Each order is canceled in a transaction of its own, with its invoice; a canceled "
    "one stays as it is. It takes a token of the write limit for each order.",
)  # fmt: skip
async def cancel_orders(request: web.Request) -> web.Response:
    """POST /api/orders/cancel: cancel the orders of the body, each by itself."""
    caller = await authenticate(request)
    caller.must("write")
    draft = await read_draft(request, SELECTION)
    ids: list[str] = json.decode(draft.values["ids"])
    if not ids:
        raise refusal([Fault("ids", "too_few", "Send at least one id.")])
    charge(request, caller, max(len(ids) - 1, 0))
    outcome = await cancel_all(request.app[DB], caller, ids, draft.values.get("reason"))
    return respond(
        CanceledOrders(
            list(outcome.done),
            [RefusedOrder(order_id, why.code, why.message) for order_id, why in outcome.refused],
        ),
        200,
        draft,
    )
