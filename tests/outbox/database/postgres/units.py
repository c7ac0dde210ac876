"""Units for the tests of the PostgreSQL driver."""

from outbox import database
from outbox.clock import SystemClock
from outbox.database.migrate import migrate
from outbox.database.transaction import Tx
from outbox.errors import CannotStart
from outbox.events import enqueue
from outbox.ids import Ids
from tests.support.databases import SOURCES


async def start(url: str, direct_url: str = "") -> str:
    """Start as a server does; return `serves`, or the line of the refusal."""
    try:
        db = await database.open(url, clock=SystemClock(), ids=Ids(), direct_url=direct_url)
        try:
            await migrate(db, SOURCES)
        finally:
            await db.close()
    except CannotStart as refused:
        return str(refused)
    return "serves"


async def put(tx: Tx, name: str) -> None:
    """Write a row with an event."""
    await tx.run(
        "insert into nodes (id, epoch, started_at, alive_until) values ($1, 1, $2, 0)",
        name, tx.now,
    )  # fmt: skip
    enqueue(tx, owner_id="o", name="x.y", record_id=name, record_version=1, data={"n": name})


async def names(tx: Tx) -> list[str]:
    return [row["id"] for row in await tx.all("select id from nodes order by id")]


async def sleep(tx: Tx, seconds: float) -> None:
    await tx.one("select pg_sleep($1)", seconds)
