"""Another valid key file (R42): nothing starts with it, nothing ends, one line tells the fix."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from outbox import database
from outbox.clock import SystemClock
from outbox.database import without_password
from outbox.database.migrate import migrate
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.webhooks import key_mark, signing_keys
from outbox.webhooks.key_files import add_key, read_key_file, write_key_file
from outbox.webhooks.secrets import parse_keys
from tests.gateway.cli.test_cli import one_line
from tests.support.databases import SOURCES, PostgresServer
from tests.support.drain import Inbox, add_webhook, inbox, make_many, rows
from tests.support.process import Serving, carteiro, environment, serving_process

pytestmark = pytest.mark.slow

EVENTS = 40
LOOPBACK = {"CARTEIRO_EGRESS__ALLOW_HTTP": "true", "CARTEIRO_EGRESS__ALLOW": "127.0.0.0/8"}
WALL = 1_760_000_000_000_000
LOST_LINE = "89abcdef AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= 2024-01-01T00:00:00Z\n"
STATES = "select state, count(*) as n from deliveries group by state"
ENGINES = pytest.mark.parametrize(
    ("there", "processes"), [("sqlite", 1), ("postgres", 1), ("postgres", 2)], indirect=["there"]
)


@dataclass
class Installation:
    """A database with waiting deliveries, its own key file, and another one."""

    folder: Path
    url: str
    box: Inbox
    own: Path
    other: Path
    webhook_id: str

    def settings(self, file: Path) -> dict[str, str]:
        return {
            "CARTEIRO_DATABASE__URL": self.url, "CARTEIRO_SECRETS__KEY_FILE": str(file), **LOOPBACK,
        }  # fmt: skip

    async def run(self, *words: str, file: Path | None = None, **more: str) -> tuple[int, str, str]:
        """Run a command, by default with the other key file."""
        done = await asyncio.to_thread(
            carteiro, *words, folder=self.folder, **self.settings(file or self.other), **more
        )
        return done.returncode, done.stdout, done.stderr

    async def refused(self, *words: str, file: Path | None = None, **more: str) -> str:
        """Run a command with the other key file; return the line of its refusal."""
        status, out, err = await self.run(*words, file=file, **more)
        assert (status, out) == (1, ""), (out, err)
        lines = [line for line in err.splitlines() if line.startswith("carteiro: ")]
        assert len(lines) == 1, err
        assert "Traceback" not in err
        return lines[0]

    async def opened(self) -> Database:
        return await database.open(self.url, clock=SystemClock(), ids=Ids())

    async def states(self) -> dict[str, int]:
        db = await self.opened()
        try:
            return {row["state"]: row["n"] for row in await db.read(rows, STATES)}
        finally:
            await db.close()

    def names_both(self, line: str, file: Path | None = None) -> None:
        assert str(file or self.other) in line
        assert without_password(self.url) in line
        assert read_key_file(self.own, Ids()).newest in line
        assert "put back the keys of this database" in line


@pytest.fixture(params=["sqlite", "postgres"])
async def there(
    request: pytest.FixtureRequest, tmp_path: Path, postgres_server: PostgresServer
) -> AsyncIterator[Installation]:
    url = f"sqlite:///{tmp_path / 'carteiro.db'}"
    if request.param == "postgres":
        url = await postgres_server.fresh()
    own, other = tmp_path / "own.key", tmp_path / "other.key"
    for file in (own, other):
        write_key_file(file, Ids(), WALL)
    db = await database.open(url, clock=SystemClock(), ids=Ids())
    async with inbox() as box:
        await migrate(db, SOURCES)
        webhook_id, _ = await add_webhook(db, read_key_file(own, Ids()), box.url)
        await db.write(make_many, EVENTS)
        await db.close()
        yield Installation(tmp_path, url, box, own, other, webhook_id)
    if request.param == "postgres":
        await postgres_server.drop(url)


async def mark(there: Installation) -> None:
    """Mark the database as its first start does."""
    db = await there.opened()
    await key_mark.must_belong(db, read_key_file(there.own, Ids()), "its key file", there.url)
    await db.close()


@pytest.mark.parametrize("marked", [False, True])
@ENGINES
async def test_no_server_starts_with_the_keys_of_another_database(
    there: Installation, marked: bool, processes: int
) -> None:
    if marked:
        await mark(there)
    for role in ("all", "worker", "api"):
        there.names_both(
            await there.refused(
                "serve",
                "--role",
                role,
                CARTEIRO_SERVER__PROCESSES=str(processes),
                CARTEIRO_SERVER__PORT="0",
            )
        )
    assert there.box.got == []
    assert set(await there.states()) <= {"ready"}
    settings = there.settings(there.own) | {"CARTEIRO_SERVER__PROCESSES": str(processes)}
    with serving_process(there.folder, **settings):
        await there.box.until(EVENTS)
        await _all_delivered(there)
    arrived = Counter(got.headers["X-Webhook-Id"] for got in there.box.got)
    assert set(arrived.values()) == {1}
    told = {"line": "wrong-key", "processes": processes, "marked": marked, "events": EVENTS}
    states = await there.states()
    print(json.dumps(told | {"dead": states.get("dead", 0), "delivered": states["delivered"]}))
    assert states == {"delivered": EVENTS}


async def _all_delivered(there: Installation) -> None:
    db = await there.opened()
    try:
        async with asyncio.timeout(20):
            while [row["state"] for row in await db.read(rows, STATES)] != ["delivered"]:
                await asyncio.sleep(0.05)
    finally:
        await db.close()


async def test_the_engine_alone_refuses_them_too(there: Installation) -> None:
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-m", "outbox", there.url, str(there.other)],
        env=environment(there.folder), capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    there.names_both(line)
    assert set(await there.states()) <= {"ready"}


async def test_keys_of_the_environment_are_tried_as_well(there: Installation) -> None:
    keys = there.other.read_text().strip()
    line = await there.refused("serve", CARTEIRO_SECRETS__KEYS=keys, CARTEIRO_SERVER__PORT="0")
    assert "secrets.keys does not belong to the database" in line


async def test_another_key_of_the_same_name_is_noticed(there: Installation) -> None:
    await mark(there)
    own, other = there.own.read_text().split(), there.other.read_text().split()
    there.other.write_text(" ".join([own[0], *other[1:]]) + "\n")
    assert "another key of the name" in await there.refused("serve", CARTEIRO_SERVER__PORT="0")


async def test_commands_that_seal_or_open_refuse_them(there: Installation) -> None:
    before = there.other.read_text()
    for words in (
        ("secrets", "rotate"),
        ("secrets", "rotate", "--only-node"),
        ("secrets", "rotate", "--stage"),
        ("doctor", there.webhook_id),
        ("verify",),
        ("backup", "a.backup", "--with-key"),
    ):
        there.names_both(await there.refused(*words))
    assert there.other.read_text() == before
    assert not (there.folder / "a.backup").exists()
    # The rows are worth a backup without any key; it says what is wrong, and knows the right key.
    status, out, err = await there.run("backup", "b.backup")
    assert status == 0, err
    there.names_both(next(line for line in out.splitlines() if line.startswith("Note: ")))
    assert "lacks the key" in await there.refused("restore", "b.backup", "--overwrite")


async def test_a_restore_with_other_keys_changes_nothing(there: Installation) -> None:
    status, _, err = await there.run("backup", "b.backup", file=there.own)
    assert status == 0, err
    before = await there.states()
    line = await there.refused("restore", "b.backup", "--overwrite")
    assert f"lacks the key {read_key_file(there.own, Ids()).newest}" in line
    # A key of the right name does not open the secrets either.
    own, other = there.own.read_text().split(), there.other.read_text().split()
    there.other.write_text(" ".join([own[0], *other[1:]]) + "\n")
    assert "does not fit the backup" in await there.refused("restore", "b.backup", "--overwrite")
    assert await there.states() == before


@pytest.mark.parametrize("there", ["sqlite"], indirect=True)
async def test_a_copy_with_other_keys_changes_nothing(
    there: Installation, postgres_server: PostgresServer
) -> None:
    target = await postgres_server.fresh()
    try:
        there.names_both(await there.refused("copy", "--to", target))
        status, _, err = await there.run("copy", "--to", target, file=there.own)
        assert status == 0, err
        there.url = target
        there.names_both(await there.refused("serve", CARTEIRO_SERVER__PORT="0"))
        settings = there.settings(there.own)
        with serving_process(there.folder, **settings):
            await there.box.until(EVENTS)
            await _all_delivered(there)
        assert await there.states() == {"delivered": EVENTS}
    finally:
        await postgres_server.drop(target)


async def test_init_makes_no_second_key(there: Installation) -> None:
    new = there.folder / "new.key"
    line = (await there.run("secrets", "init", file=new))[2]
    one_line(line, f"put its key file at {new}")
    assert read_key_file(there.own, Ids()).newest in line
    assert not new.exists()
    db = await there.opened()
    await db.write(_no_webhooks)
    await db.close()
    # Without a secret the mark tells.
    await mark(there)
    assert (await there.run("secrets", "init", file=new))[0] == 1
    if there.url.startswith("sqlite"):
        line = (await there.run("serve", file=new, CARTEIRO_SERVER__PORT="0"))[2]
        assert f"the key file {new} is missing; restore it from the backup" in line
    assert not new.exists()


async def _no_webhooks(tx: Tx) -> None:
    for table in ("deliveries", "events", "lanes", "webhooks"):
        await tx.run(f"delete from {table}")


async def test_init_says_that_it_cannot_read_the_database(tmp_path: Path) -> None:
    url = "postgresql://somebody:hidden@127.0.0.1:9/none"
    done = await asyncio.to_thread(
        carteiro, "secrets", "init", folder=tmp_path, CARTEIRO_DATABASE__URL=url
    )
    assert done.returncode == 0, done.stderr
    assert "Note: postgresql://somebody@127.0.0.1:9/none could not be read" in done.stdout
    assert "hidden" not in done.stdout + done.stderr
    assert (tmp_path / "data" / "carteiro.key").exists()


async def test_lost_keys_are_given_up_by_name_alone(there: Installation) -> None:
    await mark(there)
    db = await there.opened()
    await db.write(signing_keys.ensure, read_key_file(there.own, Ids()), Ids().token(32))
    await db.close()
    new = there.folder / "new.key"
    status, out, err = await there.run("secrets", "init", "--give-up-secrets", file=new)
    assert status == 0, err
    assert f"the key file {new} belongs to" in out
    assert "The signing keys were lost too; a new one signs" in out
    again = await there.run("secrets", "init", "--give-up-secrets", file=new)
    one_line(again[2], "nothing to give up")
    with serving_process(there.folder, **there.settings(new)) as serving:
        [line] = [line for line in serving.lines if line["event"] == "keys_missing"]
        assert line["keys"] == [read_key_file(there.own, Ids()).newest]
        async with asyncio.timeout(20):
            while not [each for each in serving.lines if each["event"] == "webhook_unreadable"]:
                await asyncio.sleep(0.05)
    assert set(await there.states()) <= {"ready", "in_flight"}
    assert there.box.got == []


async def test_the_mark_follows_a_rotation(there: Installation) -> None:
    await mark(there)
    for words in (("--stage",), ()):
        status, out, err = await there.run("secrets", "rotate", *words, file=there.own)
        assert status == 0, err
    assert "Encrypted again: 1 value." in out
    ring = read_key_file(there.own, Ids())
    older, newer = there.own.read_text().splitlines(keepends=True)
    db = await there.opened()
    try:
        assert await db.read(_needed) == (ring.newest,)
    finally:
        await db.close()
    # The old key is not needed any more; a file without the new one does not belong here.
    there.own.write_text(newer)
    assert (await there.run("verify", file=there.own))[0] == 0
    there.other.write_text(older)
    assert ring.newest in await there.refused("serve", CARTEIRO_SERVER__PORT="0")


async def _needed(tx: Tx) -> tuple[str, ...]:
    return await key_mark.needed(tx.all)


async def test_of_two_nodes_that_meet_a_new_database_one_starts(there: Installation) -> None:
    db = await there.opened()
    try:
        await db.write(_no_webhooks)
        rings = [read_key_file(file, Ids()) for file in (there.own, there.other)]
        ended = await asyncio.gather(
            *(key_mark.must_belong(db, ring, "its key file", "the database") for ring in rings),
            return_exceptions=True,
        )
        refusals = [each for each in ended if each is not None]
        assert [type(each).__name__ for each in refusals] == ["CannotStart"]
    finally:
        await db.close()


async def test_a_damaged_mark_does_not_stop_an_installation_whose_secrets_open(
    there: Installation,
) -> None:
    await mark(there)
    ring = read_key_file(there.own, Ids())
    db = await there.opened()
    try:
        [row] = await db.read(rows, "select key_mark from outbox_state")
        changed = bytearray(row["key_mark"])
        changed[-1] ^= 1
        await db.write(_set_mark, bytes(changed))
        await key_mark.must_belong(db, ring, "its key file", "the database")
    finally:
        await db.close()


async def test_one_damaged_secret_does_not_speak_for_the_others(there: Installation) -> None:
    """A database of an older release has no mark, so its secrets are tried."""
    ring = read_key_file(there.own, Ids())
    db = await there.opened()
    try:
        await add_webhook(db, ring, there.box.url)
        await db.write(_damage_oldest)
        await key_mark.must_belong(db, ring, "its key file", "the database")
        await db.write(_set_mark, None)
        other = read_key_file(there.other, Ids())
        with pytest.raises(CannotStart):
            await key_mark.must_belong(db, other, "the other key file", "the database")
    finally:
        await db.close()


async def _damage_oldest(tx: Tx) -> None:
    [row] = await tx.all("select id, secret from webhooks order by id limit 1")
    changed = bytearray(row["secret"])
    changed[-1] ^= 1
    await tx.run("update webhooks set secret = $2 where id = $1", row["id"], bytes(changed))


async def _set_mark(tx: Tx, value: bytes | None) -> None:
    await tx.run("update outbox_state set key_mark = $1", value)


async def test_a_ring_without_an_older_key_that_values_need_is_told(there: Installation) -> None:
    """The server starts, since one lost key must not stop all others, and names the key."""
    await mark(there)
    older = there.own.read_text()
    add_key(there.own, Ids(), WALL + 1, staged=False)
    ring = read_key_file(there.own, Ids())
    db = await there.opened()
    await db.write(key_mark.reseal, ring)
    await db.close()
    both = there.own.read_text()
    there.own.write_text(both.removeprefix(older))
    with serving_process(there.folder, **there.settings(there.own)) as serving:
        [line] = [line for line in serving.lines if line["event"] == "keys_missing"]
        assert (line["level"], line["keys"]) == ("error", [older.split()[0]])
        assert set(await there.states()) <= {"ready", "in_flight"}
        there.own.write_text(both)
        await there.box.until(EVENTS, seconds=40)
        await _all_delivered(there)
    assert set(Counter(got.headers["X-Webhook-Id"] for got in there.box.got).values()) == {1}


@ENGINES
async def test_a_file_replaced_under_a_running_server_ends_nothing(
    there: Installation, processes: int
) -> None:
    own = there.own.read_text()
    settings = there.settings(there.own) | {"CARTEIRO_SERVER__PROCESSES": str(processes)}
    with serving_process(there.folder, **settings) as serving:
        await there.box.until(EVENTS)
        async with asyncio.timeout(20):
            # A process that starts with a wrong file ends the start of its node.
            while "is ready; console at" not in serving.out.read_text():
                await asyncio.sleep(0.05)
        there.own.write_text(there.other.read_text())
        assert await _refused_file(serving) == 1
        db = await there.opened()
        # A webhook of the right key, which the server has not opened before, and of a lost one.
        right, lost = (parse_keys(own, Ids(), "own"), parse_keys(LOST_LINE, Ids(), "lost"))
        await add_webhook(db, right, f"{there.box.url}/new")
        waiting, _ = await add_webhook(db, lost, f"{there.box.url}/lost")
        await db.write(make_many, EVENTS)
        await there.box.until(EVENTS, "/new")
        async with asyncio.timeout(20):
            while not [each for each in serving.lines if each["event"] == "webhook_unreadable"]:
                await asyncio.sleep(0.05)
        states = {
            row["state"]
            for row in await db.read(
                rows, "select state from deliveries where webhook_id = $1", waiting
            )
        }
        assert states <= {"ready", "in_flight"}
        there.own.write_text(own + LOST_LINE)
        await there.box.until(EVENTS, "/lost", seconds=40)
        await db.close()
        await _all_delivered(there)
        assert await _refused_file(serving) == 0
    got = Counter((each.path, each.headers["X-Webhook-Id"]) for each in there.box.got)
    assert (len(got), set(got.values())) == (4 * EVENTS, {1})
    told = {"line": "wrong-key", "fault": "replaced while running", "processes": processes}
    print(json.dumps(told | await there.states()))


async def _refused_file(serving: Serving) -> float:
    """Return the metric of the server, which reads the file at each scrape."""
    text = (await asyncio.to_thread(serving.ask, "/metrics"))[1].decode()
    [line] = [each for each in text.splitlines() if each.startswith("secret_key_file_refused ")]
    return float(line.split()[1])
