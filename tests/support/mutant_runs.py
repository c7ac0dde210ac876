"""The pytest plugin of `make mutants`: records the lines of each test, and tries mutants.

A process that tries mutants collects the tests, runs one on each engine, so that what a run needs
once is there, and is then forked for each mutant. The child replaces the code of the live
functions, runs the tests, and tells its parent the first that fails.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import select
import shutil
import signal
import sys
import time
import types
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable
from pathlib import Path

import asyncpg
import coverage
import pytest

from tests.support.databases import PostgresServer
from tests.support.mutants import FOLDER, PACKAGES, ROOT, Mutant, changed_text, changed_tree, sample

SECONDS, TESTS, CASES = 4.0, 24, 3
"""What is spent on one mutant: CPU seconds, tests, and cases of one test function."""
LONG_SECONDS = 1.5
"""A test that takes longer is not tried."""
FIRST_SECONDS = 12.0
"""The time that a child has beside that of its tests."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lines", action="store_true", help="record the lines of each test")
    parser.addoption("--mutants", metavar="DRAWN", help="try a sample: size, seed and paths")
    parser.addoption("--share", default="0/1", help="the part of the sample of this process")


def pytest_configure(config: pytest.Config) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if config.getoption("--lines") and worker:
        config.pluginmanager.register(Lines(worker))
    if config.getoption("--mutants"):
        config.pluginmanager.register(Trials(config))


class Lines:
    """Records which tests enter a line, and what each test costs."""

    def __init__(self, worker: str) -> None:
        self._times = FOLDER / f"times-{worker}.json"
        self._costs: dict[str, float] = {}
        self._coverage = coverage.Coverage(
            data_file=FOLDER / f"lines-{worker}", source=[str(ROOT / one) for one in PACKAGES],
            config_file=False,
        )  # fmt: skip
        self._coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._coverage.switch_context(item.nodeid)
        began, at = time.process_time(), time.monotonic()
        result = yield
        # Tests that wait hold a child up, though they cost nothing.
        waited = (time.monotonic() - at) / 5
        self._costs[item.nodeid] = time.process_time() - began + waited
        return result

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        self._times.write_text(json.dumps(self._costs))


class Trials:
    """Tries the mutants of one process, and writes a line for each."""

    def __init__(self, config: pytest.Config) -> None:
        size, seed, *paths = config.getoption("--mutants").split()
        share, shares = map(int, config.getoption("--share").split("/"))
        self._mutants = sample(int(size), int(seed), paths)[share::shares]
        self._report = FOLDER / f"tried-{share}"
        self._files = Path(config.getoption("--basetemp"))
        self._costs: dict[str, float] = {}
        for file in FOLDER.glob("times-*"):
            self._costs |= json.loads(file.read_text())
        self._items: dict[str, pytest.Item] = {}
        self._functions: defaultdict[str, list[types.FunctionType]] = defaultdict(list)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._items = {item.nodeid: item for item in session.items}
        entered = lines_of(one.path for one in self._mutants)
        # Children find the server of their parent, which drops their databases.
        os.environ["TEST_POSTGRES_URL"] = asyncio.run(PostgresServer().url())
        for engine in ("sqlite", "postgres"):
            run(session, [next(i for i in session.items if f"[{engine}" in i.nodeid)])
        if session.testsfailed:
            raise pytest.UsageError("the tests fail without a mutant")
        self._see_functions()
        with self._report.open("w") as report:
            for one in self._mutants:
                tests = {test for line in one.lines for test in entered[one.path][line]}
                chosen = self._chosen(one, tests & self._items.keys())
                result = self._fork(session, one, chosen) if chosen else "not entered"
                record = {"mutant": str(one), "room": one.room, "result": result}
                if result not in ("survived", "not entered"):
                    record |= {"result": "killed", "by": result}
                print(json.dumps(record), file=report, flush=True)
        return True

    def _see_functions(self) -> None:
        """Find all functions of the product; each module is imported first."""
        for package in PACKAGES:
            for file in (ROOT / package).rglob("*.py"):
                name = ".".join(file.relative_to(ROOT).with_suffix("").parts)
                if not name.endswith("__main__"):
                    importlib.import_module(name.removesuffix(".__init__"))
        gc.unfreeze()
        for one in gc.get_objects():
            if isinstance(one, types.FunctionType):
                self._functions[one.__code__.co_filename].append(one)
        gc.freeze()

    def _chosen(self, mutant: Mutant, tests: set[str]) -> list[str]:
        """Return the tests to run: those beside the module first, then cheap ones."""
        folder = f"tests/{mutant.path.rpartition('/')[0]}/"
        file = f"test_{Path(mutant.path).stem}.py"

        def order(test: str) -> tuple[bool, bool, float, str]:
            return (folder not in test, file not in test, self._costs[test], test)

        chosen: list[str] = []
        cases: Counter[str] = Counter()
        spent = 0.0
        for test in sorted(tests, key=order):
            cost, function = self._costs[test], test.partition("[")[0]
            if cost < LONG_SECONDS and spent + cost < SECONDS and cases[function] < CASES:
                chosen.append(test)
                cases[function] += 1
                spent += cost
        return chosen[:TESTS]

    def _fork(self, session: pytest.Session, mutant: Mutant, tests: list[str]) -> str:
        """Return the test that failed, `timeout`, or `survived`."""
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.setsid()
            try:
                self._change(mutant)
                session.config.pluginmanager.unregister(name="terminalreporter")
                session.config.pluginmanager.register(Told(writing))
                run(session, [self._items[test] for test in tests])
                os.write(writing, b"survived")
            # A mutant may break whatever runs here.
            except BaseException as error:  # noqa: BLE001
                os.write(writing, repr(error).encode()[:200])
            os._exit(0)
        os.close(writing)
        limit = FIRST_SECONDS + 5 * sum(self._costs[test] for test in tests)
        ready, _, _ = select.select([reading], [], [], limit)
        said = os.read(reading, 1_000).decode() if ready else "timeout"
        os.close(reading)
        for end in (os.killpg, os.kill):
            try:
                end(child, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.waitpid(child, 0)
        self._clear(child)
        return said or "ended"

    def _clear(self, child: int) -> None:
        """Delete what a child left in files and databases."""
        for folder in self._files.iterdir():
            shutil.rmtree(folder, ignore_errors=True)
        asyncio.run(drop_databases(os.environ["TEST_POSTGRES_URL"], f"carteiro_{child}_"))

    def _change(self, mutant: Mutant) -> None:
        """Put the changed code into the live functions, or the changed text into the modules."""
        if mutant.number < 0:
            before, after = changed_text(mutant)
            for module in [m for n, m in sys.modules.items() if n.startswith(PACKAGES)]:
                for name, value in list(vars(module).items()):
                    if isinstance(value, str) and value == before:
                        setattr(module, name, after)
            return
        path = str(ROOT / mutant.path)
        code = compile(changed_tree(mutant), path, "exec", dont_inherit=True)
        new = {(one.co_qualname, one.co_firstlineno): one for one in inner(code)}
        for function in self._functions[path]:
            old = function.__code__
            now = new.get((old.co_qualname, old.co_firstlineno), old)
            if now != old and len(now.co_freevars) == len(old.co_freevars):
                function.__code__ = now


class Told:
    """Tells the parent of the first failure, and ends the child."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self._pipe, report.nodeid.encode())
            os._exit(0)


def run(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Run tests; what is made once for a run stays."""
    for item, following in zip(items, [*items[1:], session.items[0]], strict=True):
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


async def drop_databases(url: str, beginning: str) -> None:
    """Drop the databases of a server whose names have a beginning."""
    connection = await asyncpg.connect(url)
    try:
        names = await connection.fetch(
            "select datname from pg_database where starts_with(datname, $1)", beginning
        )
        for (name,) in names:
            await connection.execute(f"drop database if exists {name} with (force)")
    finally:
        await connection.close()


def inner(code: types.CodeType) -> Generator[types.CodeType]:
    """Yield all code inside of some code."""
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield one
            yield from inner(one)


def lines_of(paths: Iterable[str]) -> dict[str, defaultdict[int, list[str]]]:
    """Return the tests that enter each line of some modules."""
    found: dict[str, defaultdict[int, list[str]]] = {one: defaultdict(list) for one in paths}
    for file in FOLDER.glob("lines-*"):
        data = coverage.CoverageData(str(file))
        data.read()
        for path, lines in found.items():
            for line, tests in data.contexts_by_lineno(str(ROOT / path)).items():
                lines[line] += tests
        data.close()
    return found
