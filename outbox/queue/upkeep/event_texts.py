"""Read what the events of a record say, and what receivers responded, by pages of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from outbox.database.index_plans import by_index
from outbox.database.sql import IDS, items
from outbox.database.transaction import Row, Tx
from outbox.sending.response_body import show, stored_headers

# The sizes first: no more bodies are read than a page has.
BODIES = """
select e.id, e.seq, e.body, p.size from (
  select id, size, sum(size) over (order by seq desc) - size as before from (
    select id, seq, coalesce(length(body), 0) as size
    from events /*sqlite indexed by events_record*/
    where owner_id = $1 and record_id = $2 and webhook_id is null and seq is not null and seq < $3
    order by seq desc limit $4
  ) as sizes
) as p join events e on e.id = p.id where p.before < $5 order by e.seq desc
"""
# One range of each of the two partial indexes on the event.
OF_EVENTS = " union all ".join(
    f"select id from deliveries where event_id in {IDS} and origin {sign} 'event'"
    for sign in ("=", "<>")
)
ANSWERS = f"""
select a.delivery_id, a.number, a.response_headers, a.response_body, p.size from (
  select delivery_id, number, size,
    sum(size) over (order by delivery_id, number) - size as before from (
    select delivery_id, number,
      length(response_headers) + coalesce(length(response_body), 0) as size
    from attempts where delivery_id in ({OF_EVENTS}) and response_headers is not null
      and (delivery_id, number) > ($2, $3)
    order by delivery_id, number limit $4
  ) as sizes
) as p join attempts a on a.delivery_id = p.delivery_id and a.number = p.number
where p.before < $5 order by a.delivery_id, a.number
"""
LAST = 9_223_372_036_854_775_807


@dataclass(frozen=True, slots=True)
class Place:
    """How far the newest events of a record were read, and responses to those of the last page.

    `left`: how many events, and how many responses, are still read.
    """

    left: int
    before: int = LAST
    event_ids: tuple[str, ...] = ()
    answer: tuple[str, int] = ("", 0)
    answers_left: int | None = None


@dataclass(frozen=True, slots=True)
class TextPage:
    """Bodies and responses, their size in bytes, and where to go on, if so."""

    bodies: Sequence[bytes]
    answers: Sequence[Row]
    size: int
    after: Place | None

    def texts(self) -> Iterator[str]:
        """Yield the texts; the codings of responses are undone.

        Damaged ones as far as they can be read: an error would come again in each search.
        """
        for body in self.bodies:
            yield body.decode("utf-8", "replace")
        for row in self.answers:
            headers, body = row["response_headers"], bytes(row["response_body"] or b"")
            yield headers
            yield show(stored_headers(headers), body, truncated=False).text


async def page(tx: Tx, owner_id: str, record_id: str, place: Place, size: int) -> TextPage:
    """Return the next texts of the newest events of a record: up to `size` bytes, at least one."""
    await by_index(tx)
    answers_left = place.left if place.answers_left is None else place.answers_left
    if place.event_ids:
        rows = await tx.all(
            ANSWERS, items(place.event_ids), *place.answer, max(answers_left, 0), size
        )
        left = answers_left - len(rows)
        after: Place | None = Place(place.left, place.before, answers_left=left)
        if rows and left > 0:
            last = rows[-1]["delivery_id"], int(rows[-1]["number"])
            after = Place(place.left, place.before, place.event_ids, last, left)
        elif place.left <= 0:
            after = None
        return TextPage((), rows, sum(int(row["size"]) for row in rows), after)
    rows = await tx.all(BODIES, owner_id, record_id, place.before, place.left, size)
    if not rows:
        return TextPage((), (), 0, None)
    ids = tuple(row["id"] for row in rows)
    after = Place(place.left - len(rows), int(rows[-1]["seq"]), ids, answers_left=answers_left)
    bodies = [bytes(row["body"]) for row in rows if row["body"] is not None]
    return TextPage(bodies, (), sum(int(row["size"]) for row in rows), after)
