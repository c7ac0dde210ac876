"""`carteiro verify`: what it prints of a log that is whole, and of one that was changed."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import verify as command
from gateway.cli.verify import Changed
from gateway.server.config import Config, Secrets
from gateway.server.config import Database as Settings
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.queue.proof import chain_checkpoints
from outbox.sending import ed25519
from outbox.webhooks import signing_keys
from outbox.webhooks.secrets import new_key_line, parse_keys
from tests.support.chains import delivered
from tests.support.drain import OWNER


@dataclass
class Log:
    """A log, and the command on it."""

    db: Database
    config: Config
    webhooks: list[str]

    async def verify(
        self, webhook: str | None = None, noted: str | None = None, **given: object
    ) -> list[str]:
        lines: list[str] = []
        words: dict[str, object] = {
            "webhook": webhook, "noted": noted, "json": False, "retention_days": 0,
            "checkpoint": None, "public_key": None, **given,
        }  # fmt: skip
        try:
            await command.run(self.config, Namespace(**words), lines.append)
        except Changed as error:
            lines.append(str(error))
        return lines

    async def run(self, sql: str, *args: object) -> None:
        async def unit(tx: Tx) -> None:
            await tx.run(sql, *args)

        await self.db.write(unit)


@pytest.fixture
async def log(db: Database, db_url: str) -> Log:
    ids = Ids()
    line = new_key_line(ids, SystemClock().wall()).strip()
    keys = parse_keys(line, ids, "the test's ring")
    _, webhooks = await delivered(db, 6, urls=2, keys=keys)
    config = Config(database=Settings(url=db_url), secrets=Secrets(keys=line))
    return Log(db, config, webhooks)


async def test_a_whole_log_is_told_in_a_line_and_one_webhook_with_its_end(log: Log) -> None:
    [line] = await log.verify()
    count = int(line.split(" ")[0])
    assert count > 12
    assert line == f"{count} attempts of 2 webhooks: {count} signatures right."
    first, noted = await log.verify(log.webhooks[0].upper())
    assert first.startswith(f"{noted.split(' ')[2].split(':')[0]} attempts of 1 webhook: ")
    end = noted.removeprefix("To note: ")
    assert await log.verify(log.webhooks[0], end) == [first, noted]
    place, _, digest = end.partition(":")
    wrong = f"{place}:{digest[::-1]}"
    assert (await log.verify(log.webhooks[0], wrong))[-1] == "the log of 1 webhook was changed"


@dataclass
class Kept:
    """What a witness keeps: a file of checkpoints, one with the public keys, and a key as text."""

    file: str
    keys: str
    text: str

    def given(self, keys: str) -> dict[str, Any]:
        return {"checkpoint": self.file, "public_key": keys}


@pytest.fixture
async def kept(log: Log, tmp_path: Path) -> Kept:
    ring = parse_keys(log.config.secrets.keys, Ids(), "the test's ring")
    made = await log.db.write(chain_checkpoints.make, OWNER, "", ring, Ids().token(32))
    key = await log.db.read(signing_keys.current)
    assert made is not None
    assert key is not None
    file, keys = tmp_path / "checkpoints.json", tmp_path / "keys.json"
    file.write_text(json.dumps({"data": [{"number": 1, "checkpoint": made.body}]}))
    keys.write_text(json.dumps({"keys": [ed25519.jwk(key.public)]}))
    return Kept(str(file), str(keys), ed25519.public_text(key.public))


async def test_a_checkpoint_finds_what_was_computed_again_without_any_secret(
    log: Log, kept: Kept
) -> None:
    # No key file: what remains is the copy of the database, the checkpoint and the public key.
    log.config = Config(database=log.config.database, secrets=Secrets(key_file="/nowhere/keys"))
    for keys in (kept.keys, kept.text):
        _, *more = await log.verify(**kept.given(keys))
        [told] = [line for line in more if line.startswith("1 checkpoint up to ")]
        assert told.endswith(": 2 ends confirmed, 0 older than the log.")
    record = json.loads((await log.verify(json=True, **kept.given(kept.keys)))[0])
    assert (record["confirmed"], record["expired"], record["faults"]) == (2, 0, [])
    cut = log.webhooks[0]
    await log.run("delete from attempts where webhook_id = $1", cut)
    await log.run("delete from deliveries where webhook_id = $1", cut)
    await log.run("update lanes set chain_place = 0, chain_digest = '' where webhook_id = $1", cut)
    assert not [line for line in await log.verify() if "Webhook" in line]
    *_, fault, last = await log.verify(**kept.given(kept.keys))
    assert fault.startswith(f"Webhook {cut}, place 1")
    assert last == "the log of 1 webhook was changed"


async def test_what_is_no_checkpoint_of_these_keys_is_named(
    log: Log, kept: Kept, tmp_path: Path
) -> None:
    other = ed25519.public_text(ed25519.public_of(b"o" * 32))
    [refused] = await log.verify(**kept.given(other))
    assert "is signed by the key" in refused
    empty = tmp_path / "empty"
    empty.write_text("")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"checkpoint": kept.file}, "--checkpoint needs --public-key"),
        ({"public_key": kept.keys}, "--public-key needs --checkpoint"),
        ({"checkpoint": "/nowhere", "public_key": kept.text}, "/nowhere cannot be read"),
        ({"checkpoint": kept.file, "public_key": str(empty)}, "no Ed25519 public key"),
        (kept.given(kept.keys) | {"noted": "1:" + "a" * 64}, "either --noted or --checkpoint"),
    ]
    for given, says in cases:
        with pytest.raises(CannotStart, match=says):
            await log.verify(**given)


async def test_a_change_is_named_and_ends_in_a_failure(log: Log) -> None:
    await log.run("update attempts set status = 299 where place = 3")
    first, *faults, last = await log.verify()
    assert " signatures right." in first
    assert last == "the log of 2 webhooks was changed"
    assert sorted(line.split(",")[0] for line in faults) == sorted(
        f"Webhook {webhook_id}" for webhook_id in log.webhooks
    )
    for line in faults:
        assert ", place 3, attempt " in line
        assert line.endswith(": its content does not match its digest.")
    await log.run("delete from attempts where place = 1")
    *_, one, _ = await log.verify(log.webhooks[0])
    assert one == f"Webhook {log.webhooks[0]}, place 1: the row is missing."
    [told, _] = await log.verify(json=True)
    record = json.loads(told)
    assert {fault["webhook_id"] for fault in record["faults"]} == set(log.webhooks)
    assert record["ends"].keys() == set(log.webhooks)


async def test_it_refuses_what_it_cannot_look_for(log: Log) -> None:
    for webhook, noted, why in (
        ("x", None, "is not the id of a webhook"),
        ("0" * 24, None, "there is no attempt of a webhook"),
        (None, "1:" + "0" * 64, "needs --webhook"),
        (log.webhooks[0], "1", "needs --webhook"),
    ):
        with pytest.raises(CannotStart, match=why):
            await log.verify(webhook, noted)
