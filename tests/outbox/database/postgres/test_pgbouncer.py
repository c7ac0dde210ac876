"""PgBouncer in transaction mode: the same behaviour as without it, or a one-line error."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from outbox.database.migrate import migrate
from outbox.database.transaction import Tx
from outbox.errors import CannotStart
from tests.outbox.database.postgres.conftest import Open
from tests.outbox.database.postgres.units import names, put
from tests.support.bouncer import bouncer, need_renaming
from tests.support.databases import SOURCES, PostgresServer
from tests.support.long_limits import served_limits

pytestmark = pytest.mark.proof
WRITES = 200


async def test_a_pooler_without_prepared_statements_is_refused(url: str, handle: Open) -> None:
    """An old version, or a new one with this setting."""
    async with bouncer(url, prepared=0) as through:
        with pytest.raises(CannotStart, match=r"PgBouncer 1\.21 or newer with max_prepared_st"):
            await handle(through, direct_url=url)


async def test_units_limits_and_signals_work_behind_it(
    postgres_server: PostgresServer, handle: Open
) -> None:
    need_renaming()
    url = await postgres_server.empty()
    async with AsyncExitStack() as stack:
        stack.enter_context(served_limits())
        through = await stack.enter_async_context(bouncer(url))
        db = await handle(through, direct_url=url, synchronous_commit="remote_write")
        await migrate(db, SOURCES)

        async def settings(tx: Tx) -> list[str]:
            row = await tx.one(
                "select current_setting('lock_timeout') as a, current_setting('jit') as b,"
                " current_setting('statement_timeout') as c,"
                " current_setting('idle_in_transaction_session_timeout') as d,"
                " current_setting('synchronous_commit') as e,"
                " current_setting('enable_seqscan') as f"
            )
            assert row is not None
            return [row[key] for key in "abcdef"]

        own = ["off", "8s", "2s", "remote_write"]
        assert await db.write(settings) == ["5s", *own, "on"]
        assert await db.apart("lease").read(settings) == ["1s", *own, "on"]
        assert await db.apart("drain").write(settings) == ["1s", *own, "off"]
        woken = asyncio.Event()
        other = await handle(through, direct_url=url)
        other.listen(woken.set, lambda: "n1")
        await woken.wait()
        woken.clear()
        # More concurrent units than the bouncer has sessions, with statements that each session
        # needs.
        await asyncio.gather(*(db.write(put, f"{n:03}") for n in range(WRITES)))
        found = await asyncio.gather(*(db.read(names) for _ in range(20)), db.scan("ana", names))
        assert all(len(each) == WRITES for each in found)
        await woken.wait()
        await db.close()
        await other.close()
    await postgres_server.drop(url)
