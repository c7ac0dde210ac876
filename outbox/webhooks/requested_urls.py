"""Find webhooks that earlier versions requested at another path than their URL has."""

from dataclasses import dataclass

from outbox.database.transaction import Tx
from outbox.sending.request_targets import requested, target_before, target_of

PAGE = "select id, owner_id, url from webhooks where id > $1 order by id limit $2"


@dataclass(frozen=True, slots=True)
class Moved:
    """A webhook, the URL that its requests have, and the path and query that they had before."""

    id: str
    owner_id: str
    url: str
    before: str


async def moved(tx: Tx, after: str, limit: int) -> tuple[list[Moved], str | None]:
    """Return those among the next `limit` webhooks after an id, and the last id, if more follow."""
    rows = await tx.all(PAGE, after, limit)
    found = [
        Moved(row["id"], row["owner_id"], requested(row["url"]), before)
        for row in rows
        if (before := path_before(row["url"])) is not None
    ]
    return found, rows[-1]["id"] if len(rows) == limit else None


def path_before(url: str) -> str | None:
    """Return the path and query that earlier versions requested; None when they are the same."""
    before = target_before(url)
    return None if before == target_of(url) else before
