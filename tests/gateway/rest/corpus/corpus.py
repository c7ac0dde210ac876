"""Compares the responses to a corpus of calls, and the events of each, with the recorded ones.

After an intended change of responses, record the corpus again and check the diff:
RECORD_CORPUS=1 make test ARGS="tests/gateway/rest/corpus"
"""

import json
import os
import re
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from gateway.records.values.global_ids import global_id
from gateway.server.config import Config
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Row, Tx
from outbox.ids import Ids
from tests.support.databases import SqliteFiles
from tests.support.rest import Person, Reply, RestApi
from tests.support.site import Site, serving

SNAPSHOTS = Path(__file__).parents[3] / "snapshots"
START = 1_795_348_800_000_000
"""2026-11-22T12:00:00Z."""
SECOND = 1_000_000
MINUTE = 60 * SECOND
HEADERS = (
    "Content-Type", "ETag", "Location", "Link", "X-Ignored-Fields", "Allow", "Retry-After",
    "WWW-Authenticate", "Idempotent-Replayed", "Cache-Control", "Content-Disposition",
    "X-Ignored-Parameters", "Set-Cookie", "X-Cart-Session",
)  # fmt: skip
MADE = re.compile(
    r"(?P<id>(?<![0-9a-f])[0-9a-f]{24}(?![0-9a-f]))"
    r"|(?P<session>[\w-]+\.[\w-]{40,}\.[\w-]{43})|(?P<token>(?<![\w-])[\w-]{43}(?![\w-]))"
    r"|(?P<bearer>cst_[\w-]{20,})|(?<=WELCOME-)(?P<code>[0-9A-HJKMNP-TV-Z]{8})"
)
"""What is another in each run: ids, tokens, and the codes of coupons."""
TEXT = re.compile(r"(?<![\w.-])[\w-]{30,}(?![\w.-])")
GLOBAL = {
    "products": "Product", "categories": "Category", "stores": "Store", "ebooks": "Ebook",
    "discount-modals": "DiscountModal",
}  # fmt: skip
FALSE = {"X-API-Key": "crt_00000000_0000000000000000000000000000000000000000000"}


@dataclass(frozen=True, slots=True)
class Call:
    """A request. `{name}` in a path or body is what an earlier call saved as `name`.

    `save` is that name, for the id of the response, or `name=place.in.the.body`.
    """

    method: str
    path: str
    body: Any = None
    who: str = "ana"
    headers: dict[str, str] = field(default_factory=dict)
    save: str = ""
    raw: bytes | None = None
    minutes: int = 0
    """Minutes that the clock advances before the call, besides one second."""

    @property
    def title(self) -> str:
        """The path, or the beginning of a document of GraphQL."""
        return " ".join(self.body["query"].split())[:90] if "graphql" in self.path else self.path


class SetClock(SystemClock):
    """A wall clock that advances only when a test sets it."""

    at = START

    def wall(self) -> int:
        return self.at


class Names:
    """A name for each id and token, in the order of first occurrence."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def over(self, text: str) -> str:
        """Return `text` with names in their places, also inside cursors and global ids."""
        return MADE.sub(self._name, TEXT.sub(_plain, text))

    def _name(self, found: re.Match[str]) -> str:
        kind = str(found.lastgroup)
        return self._names.setdefault(found[kind], f"{kind}{len(self._names)}")


def _plain(found: re.Match[str]) -> str:
    """Return the text of a cursor or of a global id, and anything else as it is."""
    try:
        plain = urlsafe_b64decode(found[0] + "=" * (-len(found[0]) % 4)).decode("ascii")
    except ValueError:
        return found[0]
    return plain if re.search(r'[.:"][0-9a-f]{24}', plain) else found[0]


def filled(value: Any, saved: dict[str, str]) -> Any:
    """Return `value` with the saved ids inserted."""
    if isinstance(value, str):
        return re.sub(r"\{([\w-]+)\}", lambda found: saved.get(found[1], found[0]), value)
    if isinstance(value, list):
        return [filled(item, saved) for item in value]
    if isinstance(value, dict):
        return {name: filled(item, saved) for name, item in value.items()}
    return value


async def asked(call: Call, people: dict[str, Person], saved: dict[str, str]) -> Reply:
    headers = {name.replace("-", "_"): text for name, text in call.headers.items()}
    reply = await people[call.who].call(
        call.method, filled(call.path, saved), filled(call.body, saved), data=call.raw, **headers
    )
    if call.save:
        name, _, place = call.save.partition("=")
        value = reply.body
        for step in place.split(".") if place else ("id",):
            value = value[int(step) if step.isdecimal() else step]
        saved[name] = value
        if (kind := GLOBAL.get(call.path.removeprefix("/api/"))) and not place:
            saved[f"{name}-global"] = global_id(kind, value)
    return reply


class People(dict[str, Person]):
    """Who calls, by name; whoever is not known yet is a new visitor with cookies."""

    def __init__(self, site: Site, stack: AsyncExitStack) -> None:
        super().__init__()
        self._site, self._stack = site, stack

    def __missing__(self, name: str) -> Person:
        jar = aiohttp.CookieJar(unsafe=True)
        http = aiohttp.ClientSession(self._site.url, cookie_jar=jar)
        self._stack.push_async_callback(http.close)
        self[name] = Person(http, "", {})
        return self[name]


async def after(tx: Tx, pos: int) -> list[Row]:
    """Return the events after the position."""
    return await tx.all("select * from events where pos > $1 order by pos", pos)


async def compare(
    folder: Path, name: str, config: Config, corpus: Callable[[], Iterator[Call]]
) -> None:
    """Compare all calls: names replace ids in order of occurrence, and the test sets the clock."""
    recorded = SNAPSHOTS / f"{name}.jsonl"
    clock, names, saved, told, seen = SetClock(), Names(), dict[str, str](), list[Any](), 0
    db = await database.open(await SqliteFiles().fresh(folder), clock=clock, ids=Ids())
    async with AsyncExitStack() as stack:
        stack.push_async_callback(db.close)
        site = await stack.enter_async_context(serving(db, config))
        api, people = RestApi(site), People(site, stack)
        ana = await api.person()
        people |= {
            "ana": ana,
            "bia": await api.person(),
            "nobody": api.nobody,
            "reader": await api.key_of(ana.user_id, ["read"]),
            "writer": await api.key_of(ana.user_id, ["write"]),
            "false": Person(site.http, "", FALSE),
            "token": await _by_token(api),
        }
        for number, call in enumerate(corpus()):
            clock.at += SECOND + call.minutes * MINUTE
            reply = await asked(call, people, saved)
            head = {one: reply.headers.getall(one) for one in HEADERS if one in reply.headers}
            text = reply.text.replace(reply.headers.get("X-Request-Id", "-"), "REQUEST")
            told.append(
                {
                    "call": f"{number} {call.who} {call.method} {call.title}",
                    "status": reply.status,
                    "headers": {one: names.over(", ".join(all_)) for one, all_ in head.items()},
                    "body": names.over(text),
                }
            )
            for row in await db.read(after, seen):
                seen = row["pos"]
                data = json.dumps(json.loads(bytes(row["body"]))["data"], ensure_ascii=False)
                event = f"{row['name']} {data} {row['record_fields'] or ''}"
                told[-1].setdefault("events", []).append(names.over(event))
    if os.environ.get("RECORD_CORPUS"):
        recorded.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in told))
    before = [json.loads(line) for line in recorded.read_text().splitlines()]
    assert len(before) == len(told) >= 300
    different = [(was, now) for was, now in zip(before, told, strict=True) if was != now]
    assert different == []


async def _by_token(api: RestApi) -> Person:
    await api.site.user("token@example.com")
    token = await api.site.token("token@example.com")
    return Person(api.site.http, "", {"Authorization": f"Bearer {token}"})
