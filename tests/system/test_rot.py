"""Damaged files: the start is refused, or what is delivered is what was written.

Each round damages a copy of a file with waiting deliveries. The start is refused with one line, or
the drain runs on the copy: what arrives then is signed and has the bytes that were written.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.sending.request import sign_body
from outbox.webhooks.secrets import KeyRing
from outbox.worker import request_building
from tests.support.databases import SqliteFiles
from tests.support.drain import Inbox, add_webhook, drain, inbox, make_many, ring, rows
from tests.support.waiting import in_time

SEED = 26260
EVENTS = 40
FILES = ("", "-wal")
KINDS = ("flip", "flip in a body", "end the file", "end the log")
QUIET_SECONDS = 0.6
BODY = b'{"event":"thing.made"'
"""The start of each event's body in the file."""


async def run_rot(rounds: int) -> Counter[str]:
    """Damage `rounds` copies; return how starts ended, what arrived, and what was changed."""
    dice, key, ended = random.Random(SEED), ring(), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="carteiro-rot-") as home:
        folder = Path(home)
        async with inbox() as box:
            path, secret, digests = await _stage(folder, key, box.url)
            for number in range(rounds):
                copy = folder / f"{number}.db"
                what = f"{number}: {_damage(path, copy, KINDS[number % len(KINDS)], dice)}"
                box.got.clear()
                ended[await _start(copy, key, box, what)] += 1
                changed = sum(
                    hashlib.sha256(got.body).hexdigest() != digests.get(got.headers["X-Webhook-Id"])
                    or got.headers["X-Webhook-Signature"] != sign_body(secret, got.body)
                    for got in box.got
                )
                if changed:
                    print(f"{what}: {changed} changed bodies were delivered")
                ended["changed"] += changed
                ended["arrived"] += len(box.got)
                for file in folder.glob(f"{number}.db*"):
                    file.unlink()
    print(json.dumps(ended))
    return ended


async def _stage(folder: Path, key: KeyRing, url: str) -> tuple[Path, str, dict[str, str]]:
    """Return a file and its log with waiting deliveries, as a crash leaves them."""
    address = await SqliteFiles().fresh(folder)
    db = await database.open(address, clock=SystemClock(), ids=Ids(), serving=True)
    path = folder / "staged.db"
    try:
        _, secret = await add_webhook(db, key, url)
        # The first half goes into the file, the second stays in its log.
        await db.write(make_many, EVENTS // 2)
        await db.close()
        db = await database.open(address, clock=SystemClock(), ids=Ids(), serving=True)
        await db.write(make_many, EVENTS // 2)
        found = await db.read(rows, "select id, body_digest from events")
        for ending in FILES:
            shutil.copyfile(f"{address.removeprefix('sqlite:///')}{ending}", f"{path}{ending}")
    finally:
        await db.close()
    return path, secret, {row["id"]: row["body_digest"] for row in found}


def _damage(path: Path, copy: Path, kind: str, dice: random.Random) -> str:
    """Write a damaged copy; return what is wrong with it."""
    # The log has sums of its own: a flip there ends it.
    own = {"flip in a body": "", "end the file": "", "end the log": "-wal"}
    ending = own[kind] if kind in own else dice.choice(FILES)
    for each in FILES:
        shutil.copyfile(f"{path}{each}", f"{copy}{each}")
    file = Path(f"{copy}{ending}")
    content = bytearray(file.read_bytes())
    place = dice.randrange(len(content))
    if kind.startswith("end"):
        file.write_bytes(content[:place])
        return f"{ending or 'the file'} ends at {place}"
    if kind == "flip in a body":
        bodies = [n for n in range(len(content)) if content.startswith(BODY, n)]
        place = dice.choice(bodies) + dice.randrange(len(BODY), 60)
    bit = dice.randrange(8)
    content[place] ^= 1 << bit
    file.write_bytes(content)
    return f"bit {bit} of byte {place} in {ending or 'the file'}"


async def _start(copy: Path, key: KeyRing, box: Inbox, what: str) -> str:
    """Start on the copy; deliver what can be delivered. Return `refused` or `served`."""
    try:
        db = await database.open(f"sqlite:///{copy}", clock=SystemClock(), ids=Ids(), serving=True)
    except CannotStart as refusal:
        # One line that names the file.
        told = str(refusal)
        return "refused" if "\n" not in told and str(copy) in told else f"{what}: {told}"
    try:
        async with drain(db, key):
            # Ends when nothing has arrived for a while.
            while await in_time(partial(_more, box, len(box.got)), QUIET_SECONDS):
                pass
    finally:
        await db.close()
    return "served"


def _more(box: Inbox, than: int) -> bool:
    return len(box.got) > than


async def test_no_changed_body_is_delivered() -> None:
    ended = await run_rot(60)
    assert not ended["changed"]
    assert ended.keys() <= {"refused", "served", "arrived", "changed"}
    assert ended["refused"]
    assert ended["arrived"]


async def test_without_the_digest_a_changed_body_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    class Any:
        """Equal to every digest."""

        __hash__ = None  # type: ignore[assignment] # nobody hashes it

        def __eq__(self, other: object) -> bool:
            return True

    anything = SimpleNamespace(sha256=lambda _: SimpleNamespace(hexdigest=Any))
    monkeypatch.setattr(request_building, "hashlib", anything)
    assert (await run_rot(9))["changed"]
