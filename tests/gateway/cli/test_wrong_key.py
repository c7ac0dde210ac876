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
import structlog

from gateway.domain.accounts import codes, two_factor
from gateway.domain.storefront.payments import payment_secrets
from gateway.server import startup
from gateway.server.config import Config, Secrets
from gateway.server.config import Database as Settings
from outbox import database
from outbox.clock import SystemClock
from outbox.database.database_urls import without_password
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.webhooks import key_mark, signing_keys
from outbox.webhooks.key_files import add_key, read_key_file, write_key_file
from outbox.webhooks.secrets import parse_keys
from tests.gateway.cli.test_cli import one_line
from tests.gateway.domain.storefront.payments.test_payment_secrets import store_of
from tests.support.codes import code_of
from tests.support.databases import PostgresServer, SqliteFiles
from tests.support.drain import Inbox, add_webhook, drain, inbox, make_many, rows, run
from tests.support.process import Serving, carteiro, command, environment, serving_process
from tests.support.waiting import until

EVENTS = 10
LOOPBACK = {"CARTEIRO_EGRESS__ALLOW_HTTP": "true", "CARTEIRO_EGRESS__ALLOW": "127.0.0.0/8"}
WALL = 1_760_000_000_000_000
LOST_LINE = "89abcdef AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= 2024-01-01T00:00:00Z\n"
STATES = "select state, count(*) as n from deliveries group by state"
PROCESSES = pytest.mark.parametrize(
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

    def run(self, *words: str, file: Path | None = None) -> tuple[int, str, str]:
        """Run a command, by default with the other key file."""
        done = command(*words, folder=self.folder, **self.settings(file or self.other))
        return done.returncode, done.stdout, done.stderr

    async def ran(self, *words: str, file: Path | None = None) -> tuple[int, str, str]:
        return await asyncio.to_thread(self.run, *words, file=file)

    def refused(self, *words: str) -> str:
        """Run a command with the other key file; return the line of its refusal."""
        return refusal(self.run(*words))

    async def starts(self, file: Path | None = None, keys: str = "") -> str:
        """Open keys as a server does when it starts; return its refusal."""
        secrets = Secrets(key_file=str(file or self.other), keys=keys)
        config = Config(database=Settings(url=self.url), secrets=secrets)
        db = await self.opened()
        try:
            await startup.open_keys(config, db, Ids())
        except CannotStart as refused:
            return str(refused)
        finally:
            await db.close()
        return ""

    async def opened(self) -> Database:
        return await database.open(self.url, clock=SystemClock(), ids=Ids())

    async def states(self) -> dict[str, int]:
        db = await self.opened()
        try:
            return {row["state"]: row["n"] for row in await db.read(rows, STATES)}
        finally:
            await db.close()

    async def all_delivered(self) -> None:
        """Wait until nothing is left to deliver."""
        await until(self._all_delivered)

    async def _all_delivered(self) -> bool:
        return [*await self.states()] == ["delivered"]

    async def mark(self) -> None:
        """Mark the database as its first start does."""
        db = await self.opened()
        await key_mark.must_belong(db, read_key_file(self.own, Ids()), "its key file", self.url)
        await db.close()

    def rename(self) -> None:
        """Give the other key the name of the own one."""
        own, other = self.own.read_text().split(), self.other.read_text().split()
        self.other.write_text(" ".join([own[0], *other[1:]]) + "\n")

    def names_both(self, line: str) -> None:
        assert str(self.other) in line
        assert without_password(self.url) in line
        assert read_key_file(self.own, Ids()).newest in line
        assert "put back the keys of this database" in line


def refusal(ended: tuple[int, str, str]) -> str:
    """Return the one line of a command that is refused."""
    status, out, err = ended
    assert (status, out) == (1, ""), (out, err)
    [line] = [line for line in err.splitlines() if line.startswith("carteiro: ")]
    assert "Traceback" not in err
    return line


@pytest.fixture(params=["sqlite", "postgres"])
async def there(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    sqlite_files: SqliteFiles,
    postgres_server: PostgresServer,
) -> AsyncIterator[Installation]:
    if on_postgres := request.param == "postgres":
        url = await postgres_server.fresh()
    else:
        url = await sqlite_files.fresh(tmp_path)
        (tmp_path / "test.db").chmod(0o600)
    own, other = tmp_path / "own.key", tmp_path / "other.key"
    for file in (own, other):
        write_key_file(file, Ids(), WALL)
    async with inbox() as box:
        made = Installation(tmp_path, url, box, own, other, "")
        db = await made.opened()
        made.webhook_id, _ = await add_webhook(db, read_key_file(own, Ids()), box.url)
        await db.write(make_many, EVENTS)
        await db.close()
        yield made
    if on_postgres:
        await postgres_server.drop(url)


@pytest.mark.parametrize("marked", [False, True])
async def test_no_server_starts_with_the_keys_of_another_database(
    there: Installation, marked: bool
) -> None:
    if marked:
        await there.mark()
    there.names_both(await there.starts())
    keys = there.other.read_text().strip()
    assert "secrets.keys does not belong to the database" in await there.starts(keys=keys)
    assert set(await there.states()) <= {"ready"}
    db = await there.opened()
    async with drain(db, read_key_file(there.own, Ids())):
        await there.box.until(EVENTS)
        await there.all_delivered()
    await db.close()
    arrived = Counter(got.headers["X-Webhook-Id"] for got in there.box.got)
    assert set(arrived.values()) == {1}
    assert await there.states() == {"delivered": EVENTS}
    await there.mark()
    there.rename()
    assert "another key of the name" in await there.starts()


@pytest.mark.proof
@PROCESSES
async def test_no_process_starts_with_them(there: Installation, processes: int) -> None:
    count = str(processes)
    for role in ("all", "worker", "api"):
        given = there.settings(there.other) | {"CARTEIRO_SERVER__PROCESSES": count}
        words = ("serve", "--role", role, "--port", "0")
        done = await asyncio.to_thread(carteiro, *words, folder=there.folder, **given)
        there.names_both(refusal((done.returncode, done.stdout, done.stderr)))
    assert there.box.got == []
    assert set(await there.states()) <= {"ready"}
    settings = there.settings(there.own) | {"CARTEIRO_SERVER__PROCESSES": count}
    with serving_process(there.folder, **settings):
        await there.box.until(EVENTS)
        await there.all_delivered()
    states = await there.states()
    told = {"line": "wrong-key", "processes": processes, "events": EVENTS}
    print(json.dumps(told | {"dead": states.get("dead", 0), "delivered": states["delivered"]}))
    assert states == {"delivered": EVENTS}


@pytest.mark.proof
async def test_the_engine_alone_refuses_them_too(there: Installation) -> None:
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-m", "outbox", there.url, str(there.other)],
        env=environment(there.folder), capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    there.names_both(line)
    assert set(await there.states()) <= {"ready"}


def test_commands_that_seal_or_open_refuse_them(there: Installation) -> None:
    before = there.other.read_text()
    for words in (
        ("secrets", "rotate"), ("secrets", "rotate", "--only-node"),
        ("secrets", "rotate", "--stage"), ("doctor", there.webhook_id), ("verify",),
        ("backup", "a.backup", "--with-key"),
    ):  # fmt: skip
        there.names_both(there.refused(*words))
    assert there.other.read_text() == before
    assert not (there.folder / "a.backup").exists()
    # The rows are worth a backup without any key; it says what is wrong, and knows the right key.
    status, out, err = there.run("backup", "b.backup")
    assert status == 0, err
    there.names_both(next(line for line in out.splitlines() if line.startswith("Note: ")))
    assert "lacks the key" in there.refused("restore", "b.backup", "--overwrite")


def test_a_restore_with_other_keys_changes_nothing(there: Installation) -> None:
    status, _, err = there.run("backup", "b.backup", file=there.own)
    assert status == 0, err
    before = asyncio.run(there.states())
    line = there.refused("restore", "b.backup", "--overwrite")
    assert f"lacks the key {read_key_file(there.own, Ids()).newest}" in line
    # A key of the right name does not open the secrets either.
    there.rename()
    assert "does not fit the backup" in there.refused("restore", "b.backup", "--overwrite")
    assert asyncio.run(there.states()) == before


@pytest.mark.parametrize("there", ["sqlite"], indirect=True)
def test_a_copy_with_other_keys_changes_nothing(
    there: Installation, postgres_server: PostgresServer
) -> None:
    target = asyncio.run(postgres_server.fresh())
    try:
        before = asyncio.run(there.states())
        there.names_both(there.refused("copy", "--to", target))
        status, _, err = there.run("copy", "--to", target, file=there.own)
        assert status == 0, err
        there.url = target
        there.names_both(asyncio.run(there.starts()))
        assert asyncio.run(there.starts(there.own)) == ""
        assert asyncio.run(there.states()) == before
    finally:
        asyncio.run(postgres_server.drop(target))


async def test_init_makes_no_second_key(there: Installation) -> None:
    new = there.folder / "new.key"
    line = (await there.ran("secrets", "init", file=new))[2]
    one_line(line, f"put its key file at {new}")
    assert read_key_file(there.own, Ids()).newest in line
    assert not new.exists()
    db = await there.opened()
    await db.write(_no_webhooks)
    await db.close()
    # Without a secret the mark tells.
    await there.mark()
    assert (await there.ran("secrets", "init", file=new))[0] == 1
    if there.url.startswith("sqlite"):
        line = await there.starts(new)
        assert f"the key file {new} is missing; restore it from the backup" in line
    assert not new.exists()


async def _no_webhooks(tx: Tx) -> None:
    for table in ("deliveries", "events", "lanes", "webhooks"):
        await tx.run(f"delete from {table}")


def test_init_says_that_it_cannot_read_the_database(tmp_path: Path) -> None:
    url = "postgresql://somebody:hidden@127.0.0.1:9/none"
    done = command("secrets", "init", folder=tmp_path, CARTEIRO_DATABASE__URL=url)
    assert done.returncode == 0, done.stderr
    assert "Note: postgresql://somebody@127.0.0.1:9/none could not be read" in done.stdout
    assert "hidden" not in done.stdout + done.stderr
    assert (tmp_path / "data" / "carteiro.key").exists()


async def test_lost_keys_are_given_up_by_name_alone(there: Installation) -> None:
    await there.mark()
    db = await there.opened()
    await db.write(signing_keys.ensure, read_key_file(there.own, Ids()), Ids().token(32))
    await db.close()
    new = there.folder / "new.key"
    status, out, err = await asyncio.to_thread(
        there.run, "secrets", "init", "--give-up-secrets", file=new
    )
    assert status == 0, err
    assert f"the key file {new} belongs to" in out
    assert "The signing keys were lost too; a new one signs" in out
    again = await there.ran("secrets", "init", "--give-up-secrets", file=new)
    one_line(again[2], "nothing to give up")
    await _starts_without(there, new, read_key_file(there.own, Ids()).newest)


async def test_what_lost_keys_leave_unreadable_is_told_with_its_fix(there: Installation) -> None:
    await there.mark()
    db, ring = await there.opened(), read_key_file(there.own, Ids())
    secret = codes.new_secret(db.ids)
    actors = [await store_of(db, number) for number in (1, 2)]
    for actor, store_id in actors:
        await db.write(payment_secrets.stage, actor, store_id, "whsec_a", ring)
        await db.write(two_factor.start, ring, actor.owner_id, secret)

    async def confirm(tx: Tx) -> bool:
        code = code_of(secret, tx.now)
        return await two_factor.confirm(tx, ring, actors[0][0], code, (), "", {})

    # The other one has not turned it on: it signs in with its password.
    assert await db.write(confirm)
    words = ("secrets", "init", "--give-up-secrets")
    # A database that fails at the last count gives up nothing, or nobody would be told.
    await db.write(run, "alter table payment_secrets rename to away")
    assert (await there.ran(*words, file=there.folder / "new.key"))[0] == 1
    await db.write(run, "alter table away rename to payment_secrets")
    await db.close()
    status, out, err = await there.ran(*words, file=there.folder / "new.key")
    assert status == 0, err
    assert (
        "1 account with two-factor authentication needs a recovery code to sign in, or "
        "`carteiro user end-two-factor EMAIL`, and turns it on again.\n"
        "2 stores need a new payment secret, created in the console.\n"
    ) in out


async def _starts_without(there: Installation, file: Path, lost: str) -> None:
    """Start with this file: the lost key is told, and what it sealed waits."""
    db, ring = await there.opened(), read_key_file(file, Ids())
    with structlog.testing.capture_logs() as lines:
        assert await there.starts(file) == ""
        await key_mark.tell_missing(db, ring)
        [line] = [line for line in lines if line["event"] == "keys_missing"]
        assert (line["log_level"], line["keys"]) == ("error", [lost])
        async with drain(db, ring):
            await until(lambda: "webhook_unreadable" in {line["event"] for line in lines})
    await db.close()
    assert set(await there.states()) <= {"ready", "in_flight"}
    assert there.box.got == []


async def test_the_mark_follows_a_rotation(there: Installation) -> None:
    await there.mark()
    for words in (("--stage",), ()):
        status, out, err = await asyncio.to_thread(
            there.run, "secrets", "rotate", *words, file=there.own
        )
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
    assert (await there.ran("verify", file=there.own))[0] == 0
    there.other.write_text(older)
    assert ring.newest in await there.starts()


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
    await there.mark()
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
    await there.mark()
    older = there.own.read_text()
    add_key(there.own, Ids(), WALL + 1, staged=False)
    ring = read_key_file(there.own, Ids())
    db = await there.opened()
    await db.write(key_mark.reseal, ring)
    await db.close()
    there.own.write_text(there.own.read_text().removeprefix(older))
    await _starts_without(there, there.own, older.split()[0])


@pytest.mark.proof
@PROCESSES
async def test_a_file_replaced_under_a_running_server_ends_nothing(
    there: Installation, processes: int
) -> None:
    own = there.own.read_text()
    settings = there.settings(there.own) | {"CARTEIRO_SERVER__PROCESSES": str(processes)}
    with serving_process(there.folder, **settings) as serving:
        await there.box.until(EVENTS)
        # A process that starts with a wrong file ends the start of its node.
        await until(lambda: "is ready; console at" in serving.out.read_text())
        there.own.write_text(there.other.read_text())
        assert await _refused_file(serving) == 1
        db = await there.opened()
        # A webhook of the right key, which the server has not opened before, and of a lost one.
        right, lost = (parse_keys(own, Ids(), "own"), parse_keys(LOST_LINE, Ids(), "lost"))
        await add_webhook(db, right, f"{there.box.url}/new")
        waiting, _ = await add_webhook(db, lost, f"{there.box.url}/lost")
        await db.write(make_many, EVENTS)
        await there.box.until(EVENTS, "/new")
        await until(lambda: "webhook_unreadable" in {each["event"] for each in serving.lines})
        states = {
            row["state"]
            for row in await db.read(
                rows, "select state from deliveries where webhook_id = $1", waiting
            )
        }
        assert states <= {"ready", "in_flight"}
        there.own.write_text(own + LOST_LINE)
        await there.box.until(EVENTS, "/lost")
        await db.close()
        await there.all_delivered()
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
