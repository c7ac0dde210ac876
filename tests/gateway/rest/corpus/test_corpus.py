"""Compares the responses to a corpus of REST calls with the recorded ones.

After an intended change of responses, record the corpus again and check the diff:
RECORD_CORPUS=1 make test ARGS="tests/gateway/rest/corpus"
"""

import json
import os
import re
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

from gateway.server.config import Auth, Config, Limits
from outbox import database
from outbox.clock import SystemClock
from outbox.ids import Ids
from tests.gateway.rest.corpus.calls import Call, calls
from tests.support.databases import SqliteFiles
from tests.support.rest import Person, Reply, RestApi
from tests.support.site import serving

RECORDED = Path(__file__).parents[3] / "snapshots" / "calls.jsonl"
START = 1_795_348_800_000_000
"""2026-11-22T12:00:00Z."""
SECOND = 1_000_000
MINUTE = 60 * SECOND
OPEN = Config(
    auth=Auth(signup="open"),
    limits=Limits(read_per_second=0, write_per_second=0, sign_in_per_minute=0),
)
HEADERS = (
    "Content-Type", "ETag", "Location", "Link", "X-Ignored-Fields", "Allow", "Retry-After",
    "WWW-Authenticate", "Idempotent-Replayed", "Cache-Control", "Content-Disposition",
)  # fmt: skip
ID = re.compile(r"[0-9a-f]{24}")
CURSOR = re.compile(r'(?<="nextCursor":")[\w-]{30,}(?=")|(?<=cursor=)[\w-]{30,}')
FALSE = {"X-API-Key": "crt_00000000_0000000000000000000000000000000000000000000"}


class SetClock(SystemClock):
    """A wall clock that advances only when a test sets it."""

    at = START

    def wall(self) -> int:
        return self.at


class Names:
    """A name for each id, in the order of first occurrence."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def over(self, text: str) -> str:
        """Return `text` with names instead of ids, also inside cursors."""
        plain = CURSOR.sub(
            lambda found: urlsafe_b64decode(f"{found[0]}==").decode("ascii", "replace"), text
        )
        return ID.sub(
            lambda found: self._names.setdefault(found[0], f"id{len(self._names)}"), plain
        )


def filled(value: Any, saved: dict[str, str]) -> Any:
    """Return `value` with the saved ids inserted."""
    if isinstance(value, str):
        return re.sub(r"\{([\w-]+)\}", lambda found: saved[found[1]], value)
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
        saved[call.save] = reply.body["id"]
    return reply


async def test_every_call_gets_its_recorded_response(tmp_path: Path) -> None:
    """Names replace ids in order of occurrence, and the test sets the clock."""
    clock, names, saved, told = SetClock(), Names(), dict[str, str](), []
    db = await database.open(await SqliteFiles().fresh(tmp_path), clock=clock, ids=Ids())
    try:
        async with serving(db, OPEN) as site:
            api = RestApi(site)
            ana = await api.person()
            people = {
                "ana": ana,
                "bia": await api.person(),
                "nobody": api.nobody,
                "reader": await api.key_of(ana.user_id, ["read"]),
                "writer": await api.key_of(ana.user_id, ["write"]),
                "false": Person(site.http, "", FALSE),
                "token": await _by_token(api),
            }
            for number, call in enumerate(calls()):
                clock.at += SECOND + call.minutes * MINUTE
                reply = await asked(call, people, saved)
                head = {name: reply.headers[name] for name in HEADERS if name in reply.headers}
                text = reply.text.replace(reply.headers.get("X-Request-Id", "-"), "REQUEST")
                told.append(
                    {
                        "call": f"{number} {call.who} {call.method} {call.path}",
                        "status": reply.status,
                        "headers": {name: names.over(text) for name, text in head.items()},
                        "body": names.over(text),
                    }
                )
    finally:
        await db.close()
    if os.environ.get("RECORD_CORPUS"):
        RECORDED.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in told))
    recorded = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    assert len(recorded) == len(told) >= 300
    different = [(was, now) for was, now in zip(recorded, told, strict=True) if was != now]
    assert different == []


async def _by_token(api: RestApi) -> Person:
    await api.site.user("token@example.com")
    token = await api.site.token("token@example.com")
    return Person(api.site.http, "", {"Authorization": f"Bearer {token}"})
