"""A node serves while a newer version migrates its database, and starts again beside it.

The newer version's migration is additive, as `docs/how-to/upgrade.md` asks for. PostgreSQL alone:
an SQLite file belongs to one server.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from outbox.database.migrate import migrate
from tests.support.databases import SOURCES
from tests.support.deployed import deployed

NEXT = """-- additive
alter table deliveries add column next_note text;
alter table events add column next_note text;
create table next_things (id text primary key);
create index next_events on events (occurred_at);
"""
RATE = 80.0


async def test_a_node_goes_on_during_the_migration_of_a_newer_version(tmp_path: Path) -> None:
    folder = tmp_path / "migrations"
    name, own = SOURCES[0]
    shutil.copytree(own, folder)
    number = max(int(file.name[:4]) for file in folder.glob("*.sql")) + 1
    (folder / f"{number:04d}_next.sql").write_text(NEXT)
    async with deployed("postgres", seed=1) as site:
        async with site.writing(RATE):
            await site.more(100)
            async with site.opened() as db:
                assert await migrate(db, [(name, folder), *SOURCES[1:]]) == [f"{number:04d}_next"]
            await site.more(200)
        # This version again, on the newer schema.
        assert await site.product.stop() == 0
        await site.product.start()
        async with site.writing(RATE):
            await site.more(100)
        verdict = await site.verdict("migration of a newer version")
    verdict.find(len(site.load.refused) + len(site.load.broken), "writes refused or cut")
    verdict.must_hold()
