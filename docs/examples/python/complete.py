"""Find which numbered deliveries of a webhook a copy lacks, and read them from the events feed.

The copy is a table where the receiver stores the number (X-Webhook-Sequence) and the raw body of
each delivery. What ended without a delivery has a state and no body: every number is explained.
"""

import json
import os
import sqlite3
from collections.abc import Iterator
from typing import Any
from urllib.request import Request, urlopen

URL, KEY, WEBHOOK = (os.environ[name] for name in ("CARTEIRO_URL", "CARTEIRO_KEY", "WEBHOOK_ID"))
TABLE = (
    "create table if not exists deliveries (sequence integer primary key, body text, state text)"
)
copy = sqlite3.connect(os.environ.get("COPY", "deliveries.db"), timeout=30)
copy.execute(TABLE)


def ask(first: int, last: int) -> dict[str, Any]:
    path = f"/api/events?webhook={WEBHOOK}&from={first}&to={last}&limit=100"
    with urlopen(Request(URL + path, headers={"X-API-Key": KEY})) as answer:
        page: dict[str, Any] = json.load(answer)
        return page


def holes(last: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of numbers up to `last` that the copy lacks."""
    expected = 1
    for (number,) in copy.execute("select sequence from deliveries order by sequence").fetchall():
        if expected < number:
            yield expected, number - 1
        expected = number + 1
    if expected <= last:
        yield expected, last


def fill(first: int, last: int) -> int:
    """Store what became of these numbers; return how many requests it took."""
    requests = 0
    while first:
        page = ask(first, last)
        rows = [(one["sequence"], one["body"], one["state"]) for one in page["data"]]
        for span in page["expired"]:
            numbers = range(span["first"], span["last"] + 1)
            rows += [(number, None, "expired") for number in numbers]
        # The receiver may have stored one of them meanwhile; it is the same one.
        copy.executemany("insert or ignore into deliveries values (?, ?, ?)", rows)
        copy.commit()
        requests, first = requests + 1, page.get("nextFrom", 0)
    return requests


had = copy.execute("select count(*) from deliveries").fetchone()[0]
last = ask(1, 1)["lastSequence"]
requests = sum(fill(*hole) for hole in list(holes(last)))
print(f"{last} numbers, {last - had} were missing, {requests} requests")
