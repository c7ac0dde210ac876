"""Runs expensive reads: charges their cost, queues them, and cancels them on disconnect."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Concatenate, ParamSpec, TypeVar

from aiohttp import web

from gateway.records.audit import Actor
from gateway.records.errors import rate_limited
from gateway.rest.auth import charge
from gateway.server.app_keys import DB
from gateway.server.http.inbound import Connection
from gateway.server.http.rate_limits import COSTS, Costly
from outbox.database.fair_limit import Crowded
from outbox.database.transaction import Tx

P = ParamSpec("P")
T = TypeVar("T")
GONE = "The client disconnected."


async def scan(
    request: web.Request,
    actor: Actor,
    kind: Costly,
    unit: Callable[Concatenate[Tx, Actor, P], Awaitable[T]],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run an expensive unit of the actor and charge its cost, less the token charged before.

    Raises rate_limited, and ConnectionResetError when the client disconnects.
    """
    charge(request, actor, COSTS[kind] - 1)
    connection = request.protocol
    if request.transport is None:
        raise ConnectionResetError(GONE)
    work = asyncio.ensure_future(request.app[DB].scan(actor.owner_id, unit, actor, *args, **kwargs))
    if isinstance(connection, Connection):
        connection.on_lost = work.cancel
    try:
        return await work
    except Crowded:
        raise rate_limited(
            "Too many searches and reports of this account are waiting; send fewer at once.", 1
        ) from None
    except asyncio.CancelledError:
        if request.transport is not None:
            raise
        raise ConnectionResetError(GONE) from None
    finally:
        if isinstance(connection, Connection):
            connection.on_lost = None
