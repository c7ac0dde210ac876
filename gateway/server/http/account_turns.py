"""Work that accounts do in turn: however much one asks for, others wait for one turn of it.

Building a list, parsing a large body, executing a document and writing a file take the event loop,
or a thread beside it, for a millisecond or more each.
"""

from aiohttp import web

from outbox.database.fair_limit import FairSemaphore, Place
from outbox.database.transaction import asker

Turns = web.AppKey[FairSemaphore]
BUILDING: Turns = web.AppKey("BUILDING")
"""Lists that are built; each may need megabytes before its response counts."""
LISTS = 16
LISTS_EACH = 3
PARSING: Turns = web.AppKey("PARSING")
"""A large body that is parsed: as much work as a hundred small ones."""
WRITING: Turns = web.AppKey("WRITING")
"""A PDF file that is written, or a logo that is read: several would slow down the server."""
EXECUTING: Turns = web.AppKey("EXECUTING")
"""A storefront operation with many values: each takes the loop for a tenth of a second."""
OPERATIONS = 4
OPERATIONS_EACH = 2
OPERATIONS_WAITING = 64
WAITING = 512
FILES_WAITING = 32
"""Of one account; each takes about 0.1 s."""


def set_up(app: web.Application) -> None:
    """Give an application the places."""
    app[BUILDING] = FairSemaphore(LISTS, each=LISTS_EACH, waiting=WAITING)
    app[PARSING] = FairSemaphore(1, each=1, waiting=WAITING)
    app[EXECUTING] = FairSemaphore(OPERATIONS, each=OPERATIONS_EACH, waiting=OPERATIONS_WAITING)
    app[WRITING] = FairSemaphore(1, each=1, waiting=FILES_WAITING)


def turn(request: web.Request, of: Turns) -> Place:
    """Return a block with a turn of whose request this is. It raises Crowded."""
    return request.app[of].place(asker())
