"""Find the client certificates of active webhooks that end first, in pieces of the webhooks.

No index has their ends. Each reading looks at a number of webhooks by id, and a pass looks at all;
until it is complete, the result of the previous pass is reported.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from outbox.database.index_plans import by_index
from outbox.database.transaction import Tx
from outbox.sending.client_certificates import ENDS_SOON

MOST_ENDING = 20
"""Client certificates that a reading names."""
EACH_OWNER = 3
"""Of these, the most of one owner."""
WEBHOOKS_AT_ONCE = 1_000
"""Webhooks that a reading looks at, in some 2 ms."""

PIECE_END = "select id from webhooks where id > $1 order by id limit 1 offset $2"
# By id alone: on the state there is an index of all active webhooks.
PIECE = """
select id, owner_id, certificate_until from webhooks
where id > $1{until} and certificate_until < $2 and state || '' = 'active'
"""
PIECE_UNTIL = PIECE.format(until=" and id <= $3")
LAST_PIECE = PIECE.format(until="")


@dataclass(frozen=True, slots=True)
class Ending:
    """A client certificate that ends soon or has ended; `until` is in microseconds UTC."""

    webhook_id: str
    owner_id: str
    until: int


@dataclass(frozen=True, slots=True)
class Piece:
    """What a piece has, read at `now`; its last webhook, None at the end of a pass."""

    now: int
    end: str | None
    found: list[Ending]


class EndingCertificates:
    """Finds the certificates that end first, one piece after another, pass after pass."""

    def __init__(self, webhooks: int | None = None) -> None:
        self._at_once = WEBHOOKS_AT_ONCE if webhooks is None else webhooks
        self._after = ""
        self._found: list[Ending] = []
        self._named: list[Ending] = []
        self.complete = False
        """Whether every webhook has been looked at once."""

    async def read(self, tx: Tx) -> Piece:
        """Read the next piece, for `put`."""
        await by_index(tx)
        soon = tx.now + ENDS_SOON
        row = await tx.one(PIECE_END, self._after, self._at_once - 1)
        if row is None:
            end, rows = None, await tx.all(LAST_PIECE, self._after, soon)
        else:
            end = str(row["id"])
            rows = await tx.all(PIECE_UNTIL, self._after, soon, end)
        found = [Ending(row["id"], row["owner_id"], row["certificate_until"]) for row in rows]
        return Piece(tx.now, end, found)

    def put(self, piece: Piece) -> list[Ending]:
        """Add a piece; return what the last complete pass has found, the first to end first."""
        self._found = _first([*self._found, *piece.found], piece.now)
        self._after = piece.end or ""
        if piece.end is None:
            self._named, self._found = self._found, []
            self.complete = True
        return self._named


def _first(found: Iterable[Ending], now: int) -> list[Ending]:
    """Return those that end next, then those that have ended last; of each owner a few."""

    def rank(one: Ending) -> tuple[bool, int, str]:
        ended = one.until < now
        return ended, -one.until if ended else one.until, one.webhook_id

    named: list[Ending] = []
    of: Counter[str] = Counter()
    for one in sorted(found, key=rank):
        if of[one.owner_id] < EACH_OWNER and len(named) < MOST_ENDING:
            of[one.owner_id] += 1
            named.append(one)
    return named
