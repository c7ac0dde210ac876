"""The product without the guards around searches: no turns, no cancellation, no cost.

Run in place of `python -m gateway`. Long reads wait in one queue for all owners, run to their end
after a disconnection, and cost one token of their key's own bucket.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from gateway.__main__ import main
from outbox.database.fair_limit import Places

CONNECTIONS: Any = import_module("gateway.server.http.connections")
COSTS: Any = import_module("gateway.server.http.rate_limits").COSTS
_init, _take, _leave = Places.__init__, Places.take, Places.leave


def unbounded(self: Places, count: int, **_: int) -> None:
    """As the product's, with all places for one holder."""
    _init(self, count, each=1_000, waiting=1_000_000, most=1_000_000)


async def in_one_line(self: Places, holder: str) -> None:
    """As the product's, with one holder for everybody."""
    await _take(self, "all")


def out_of_one_line(self: Places, holder: str) -> None:
    """As the product's."""
    _leave(self, "all")


def stays(self: Any, exc: BaseException | None) -> None:
    """As the product's, without a notice of the client's disconnection."""
    self.on_lost = None
    _lost(self, exc)


_lost = CONNECTIONS.Connection.connection_lost

if __name__ == "__main__":
    Places.__init__ = unbounded  # type: ignore[method-assign]
    Places.take = in_one_line  # type: ignore[method-assign]
    Places.leave = out_of_one_line  # type: ignore[method-assign]
    CONNECTIONS.Connection.connection_lost = stays
    COSTS.update(dict.fromkeys(COSTS, 1))
    sys.exit(main())
