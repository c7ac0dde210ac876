"""`carteiro verify`: what it prints of a log that is whole, and of one that was changed."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import dataclass

import pytest

from gateway.cli import verify as command
from gateway.cli.verify import Changed
from gateway.server.config import Config, Secrets
from gateway.server.config import Database as Settings
from outbox.clock import SystemClock
from outbox.database.transaction import Database, Tx
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.sending.request import new_secret
from outbox.webhooks import rotation
from outbox.webhooks.secrets import new_key_line, parse_keys
from tests.support.chains import delivered


@dataclass
class Log:
    """A log, and the command on it."""

    db: Database
    config: Config
    webhooks: list[str]

    async def verify(
        self, webhook: str | None = None, noted: str | None = None, **given: int
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


async def test_it_tells_why_signatures_were_not_checked(log: Log) -> None:
    await log.run("update events set body = null, erased_at = 1")
    lines = await log.verify()
    assert lines[0].endswith(": 0 signatures right.")
    assert lines[1].endswith(
        " signatures not checked: over a body that was erased, or deleted with its event."
    )
    await log.run("update events set erased_at = null")
    assert "was removed, but the event is not erased." in (await log.verify())[1]


async def test_it_refuses_what_it_cannot_look_for(log: Log) -> None:
    for webhook, noted, why in (
        ("x", None, "is not the id of a webhook"),
        ("0" * 24, None, "there is no attempt of a webhook"),
        (None, "1:" + "0" * 64, "needs --webhook"),
        (log.webhooks[0], "1", "needs --webhook"),
    ):
        with pytest.raises(CannotStart, match=why):
            await log.verify(webhook, noted)


async def test_signatures_of_a_replaced_secret_are_not_faults(log: Log) -> None:
    ring = parse_keys(log.config.secrets.keys, Ids(), "the test's ring")
    secret = new_secret(bytes(32))
    for webhook_id in log.webhooks:
        await log.db.write(rotation.stage, webhook_id, secret, ring)
        await log.db.write(rotation.activate, webhook_id)
    assert len(await log.verify()) == 1
    await log.run("update webhooks set old_secret = null")
    lines = await log.verify()
    assert lines[0].endswith(": 0 signatures right.")
    assert lines[1].endswith(" signatures not checked: made with a secret that was replaced since.")
    # The same secret, had it been the one from the beginning.
    await log.run("update webhooks set secret_since = 0, secret_place = 0")
    assert "its signature does not match its body." in (await log.verify())[1]
