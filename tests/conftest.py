"""Fixtures that every part of the tests shares."""

import gc
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import settings

from outbox.database.transaction import Database
from tests.support.databases import PostgresServer, SqliteFiles, open_fresh
from tests.support.log_lines import only_warnings
from tests.support.long_limits import lengthen
from tests.support.targets import leaves_out, mark_proofs

ENGINES = os.environ.get("TEST_ENGINES", "sqlite postgres").split()
"""What `make test-fast` leaves out is not even collected, which takes as long as many tests."""

pytest_plugins = ["tests.support.require_all", "tests.support.proof"]


def pytest_configure() -> None:
    """Settings of whoever runs the tests stay outside, and no machine is too slow for a unit."""
    lengthen()
    only_warnings()
    # No example has a limit of time: a busy machine would reach it.
    settings.register_profile("carteiro", deadline=None)
    settings.load_profile("carteiro")
    # Commands speak the language of the locale.
    os.environ["LC_ALL"] = "C.UTF-8"
    # A background job of a shell ignores SIGINT, and so would the programs that tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Neither does one that `nohup` starts hear SIGHUP.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    for name in [name for name in os.environ if name.startswith("CARTEIRO_")]:
        del os.environ[name]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave the files of proofs alone where no proof is to run."""
    path = collection_path.relative_to(config.rootpath).as_posix()
    return leaves_out(config.getoption("markexpr"), path) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of each target."""
    tests = set()
    for item in items:
        case = getattr(item, "callspec", None)
        if case is not None and "db_url" in case.params:
            # Of the cases that each have a database of their own, `make test-fast` runs the first.
            test = (item.nodeid.partition("[")[0], case.params["db_url"])
            if test in tests:
                item.add_marker(pytest.mark.slow)
            tests.add(test)
    mark_proofs(items)


def pytest_collection_finish() -> None:
    """Spare the garbage collector the collected tests, and half of its rounds.

    The tests live to the end, and each server that a test starts is built of many small objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture(scope="session")
def sqlite_files() -> SqliteFiles:
    return SqliteFiles()


@pytest.fixture(scope="session")
def postgres_server() -> PostgresServer:
    return PostgresServer()


@pytest.fixture(params=ENGINES)
async def db_url(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    sqlite_files: SqliteFiles,
    postgres_server: PostgresServer,
) -> AsyncIterator[str]:
    """The address of a migrated, empty database; each test runs once per engine."""
    if request.param == "sqlite":
        yield await sqlite_files.fresh(tmp_path)
        return
    url = await postgres_server.fresh()
    yield url
    await postgres_server.drop(url)


@pytest.fixture
async def db(db_url: str) -> AsyncIterator[Database]:
    """An open database on each engine."""
    db = await open_fresh(db_url)
    yield db
    await db.close()
