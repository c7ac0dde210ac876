"""`carteiro move` between cells: the target by its name, and what the directory says afterwards."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gateway.domain.cells.directory import CellDirectory, Kind, Name
from gateway.records.values.emails import fold_email
from gateway.server.cell_parts import directory_of
from gateway.server.config import Cell, Config
from outbox.clock import SystemClock
from outbox.ids import Ids
from outbox.queue.upkeep.owner_moves import MoveState
from tests.support.databases import PostgresServer, SqliteFiles
from tests.support.moved import PATIENT, Pair, has_moved, standing
from tests.support.movers import House, furnished, keys_at
from tests.support.process import command_of


@dataclass(frozen=True)
class Cells(Pair):
    """A house in the cell `one`, the empty cell `two`, and their directory."""

    directory: str
    folder: Path

    def carteiro(self, *words: str, config: str = "one.toml", status: int = 0) -> str:
        """Run a command as a cell, or as the installation of another configuration."""
        named = ["--config", str(self.folder / config), *words]
        url = {"CARTEIRO_DATABASE__URL": self.house.url}
        done = command_of(PATIENT, *named, folder=self.folder, **url)
        assert done.returncode == status, (done.stdout, done.stderr)
        return done.stdout + done.stderr

    def move(self, *more: str, to: str = "two", config: str = "one.toml", status: int = 0) -> str:
        """Run the command for the first owner of the house."""
        return self.carteiro(
            "move", self.house.email, "--to", to, *more, config=config, status=status
        )

    def alone(self, house: House) -> None:
        """Write the configuration of an installation that is no cell."""
        (self.folder / "alone.toml").write_text(
            f'[database]\nurl = "{house.url}"\n[secrets]\nkey_file = "{house.keys}"\n'
        )

    @property
    def standing(self) -> MoveState:
        """Where the first owner is, by the source."""
        return asyncio.run(standing(self.house.url, self.house.mover))


def write(cells: Cells, name: str, url: str, peers: Sequence[dict[str, str]]) -> None:
    """Write the configuration of a cell."""
    listed = ", ".join(
        "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in peer.items()) + " }"
        for peer in peers
    )
    (cells.folder / f"{name}.toml").write_text(
        f'[database]\nurl = "{url}"\n[secrets]\nkey_file = "{cells.folder / name}.key"\n'
        f'[cell]\nname = "{name}"\npeers = [{listed}]\ndirectory = "{cells.directory}"\n'
    )


@pytest.fixture
def cells(tmp_path: Path, postgres_server: PostgresServer) -> Iterator[Cells]:
    with asyncio.Runner() as runner:
        house = runner.run(furnished(postgres_server, tmp_path))
        target = runner.run(postgres_server.fresh())
        directory = runner.run(postgres_server.empty())
        house = replace(house, keys=house.keys.rename(tmp_path / "one.key"))
        keys_at(keys := tmp_path / "two.key")
        made = Cells(house, target, keys, directory, tmp_path)
        two = {
            "name": "two",
            "url": "https://two.example.com",
            "config": str(tmp_path / "two.toml"),
        }
        three = {"name": "three", "url": "https://three.example.com"}
        write(made, "one", house.url, [two, three])
        write(made, "two", target, [{"name": "one", "url": "https://one.example.com"}])
        yield made
        for url in (house.url, target, directory):
            runner.run(postgres_server.drop(url))


def names(cells: Cells, kind: Kind, *entered: Name) -> Sequence[Name]:
    """Enter names into the directory; return those of a kind."""
    return asyncio.run(_asked(cells, kind, *entered))


async def _asked(cells: Cells, kind: Kind, *entered: Name) -> Sequence[Name]:
    config = Config(cell=Cell("one", (), cells.directory))
    directory = directory_of(config, SystemClock(), Ids())
    assert isinstance(directory, CellDirectory)
    try:
        await directory.enter(entered)
        return await directory.page(kind, "")
    finally:
        await directory.close()


def test_a_name_that_another_cell_has_is_refused(cells: Cells) -> None:
    """An owner who comes from outside may have a name that somebody has in a cell."""
    names(cells, "email", Name("hostname", "ana.example", "one", "f" * 24))
    cells.alone(cells.house)
    said = cells.move(to=str(cells.folder / "two.toml"), config="alone.toml", status=1)
    assert "another cell has the hostname ana.example" in said
    assert cells.standing == MoveState()


def test_an_owner_of_a_single_sqlite_installation_enters_a_cell(
    cells: Cells, sqlite_files: SqliteFiles, tmp_path: Path
) -> None:
    (home := tmp_path / "home").mkdir()
    outside = replace(cells, house=asyncio.run(furnished(sqlite_files, home)))
    house, before = outside.house, outside.source()
    outside.alone(house)
    outside.move(to=str(cells.folder / "two.toml"), config="alone.toml")
    has_moved(outside, before)
    [mine] = names(cells, "email")
    assert (mine.value, mine.cell, mine.owner_id) == (fold_email(house.email), "two", house.mover)
    assert [one.cell for one in names(cells, "hostname")] == ["two"]
    [key] = names(cells, "key")
    assert house.headers["X-API-Key"].startswith(key.value)


def test_a_target_that_cannot_be_used(cells: Cells) -> None:
    for to, more, said in (
        ("four", (), "--to takes the URL of a database, a name in cell.peers, or"),
        ("three", (), "cell.peers has no config of three"),
        ("one.toml", (), "--to is the database that has the owner"),
        ("two", ("--key-file", "two.key"), "--key-file is for a database"),
    ):
        assert said in cells.move(*more, to=to, status=1)


def test_a_directory_that_is_wrong_changes_nothing(cells: Cells) -> None:
    wrong = cells.directory.replace("carteiro_", "missing_", 1)
    config = cells.folder / "two.toml"
    config.write_text(config.read_text().replace(cells.directory, wrong))
    assert "cells share one directory" in cells.move(status=1)
    cells.alone(cells.house)
    said = cells.move(to=str(config), config="alone.toml", status=1)
    assert "cell.directory of the target: PostgreSQL: connection lost" in said
    assert cells.standing == MoveState()
