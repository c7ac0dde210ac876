"""Notes each statement that reaches a database, BEGIN and COMMIT too."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from outbox.database.postgres.hosts import Hosts, Session
from outbox.database.sqlite.file import File


@contextmanager
def noted() -> Iterator[list[str]]:
    """Note the statements of databases that are opened in the block; each is a round trip."""
    sent: list[str] = []
    hosts_connect, file_connect = Hosts.connect, File.connect

    async def connect(self: Hosts, *words: object, **options: Any) -> Any:
        connection = await hosts_connect(self, *words, **options)
        # Signals have a connection outside the pool. For asyncpg, any connection is an instance.
        if type(connection) is Session:
            connection.add_query_logger(lambda query: sent.append(query.query.strip()))
        return connection

    def opened(self: File, writable: bool = True) -> sqlite3.Connection:
        connection = file_connect(self, writable)
        connection.set_trace_callback(lambda text: sent.append(text.strip()))
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Hosts, "connect", connect)
        patch.setattr(File, "connect", opened)
        yield sent


async def fresh(sent: list[str]) -> None:
    """Forget what was noted; asyncpg calls its loggers a turn of the loop later."""
    await asyncio.sleep(0)
    sent.clear()


def heads(sent: list[str]) -> list[str]:
    """Return the beginning of each statement, up to the name of its table."""
    return [" ".join(text.lower().split("(")[0].split()[:3]) for text in sent]
