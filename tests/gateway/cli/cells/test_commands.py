"""The `carteiro cells` commands with two cells, and a plan of moves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from gateway.domain.cells.directory import Name
from gateway.records.values.emails import fold_email
from outbox.clock import SystemClock
from outbox.database.transaction import Tx
from outbox.queue.state.attempt_counts import STEP, start_of
from tests.gateway.cli.moving.test_cells import Cells, cells, names
from tests.support.movers import opened
from tests.support.process import command

__all__ = ["cells"]
FIGURE = """
insert into figures (subject_id, span, at, result, count, total_us,
  t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13)
values ($1, $2, $3, 'event', $4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
on conflict (subject_id, at, span, result) do update set count = excluded.count
"""


def without_three(cells: Cells) -> None:
    """Leave out the cell that has no configuration."""
    path = cells.folder / "one.toml"
    text = path.read_text()
    path.write_text(text.replace(', { name = "three", url = "https://three.example.com" }', ""))


async def _loaded(cells: Cells, loads: dict[str, int]) -> None:
    async def unit(tx: Tx) -> None:
        await tx.run("delete from figures")
        for owner, load in loads.items():
            await tx.run(FIGURE, owner, STEP, start_of(SystemClock().wall(), STEP), load)

    db = await opened(cells.house.url)
    await db.write(unit)
    await db.close()


def test_the_list(cells: Cells) -> None:
    without_three(cells)
    asyncio.run(_loaded(cells, {cells.house.owners[0]: 70, cells.house.owners[1]: 30}))
    one, two = map(json.loads, cells.carteiro("cells", "list", "--json").splitlines())
    assert (one["name"], one["owners"], one["stores"]) == ("one", "2", "2")
    assert (one["eventsLastHour"], one["eventsLastDay"], one["state"]) == (
        "100",
        "100",
        "reachable",
    )
    assert (two["name"], two["owners"], two["url"]) == ("two", "0", "https://two.example.com")
    assert "REACHABLE" in cells.carteiro("cells", "list").upper()
    path = cells.folder / "two.toml"
    path.write_text(path.read_text().replace(cells.target, "postgresql://127.0.0.1:1/none"))
    one, two = map(json.loads, cells.carteiro("cells", "list", "--json").splitlines())
    assert one["state"] == "reachable"
    assert two["state"].startswith("cannot reach PostgreSQL")


def test_a_plan_is_done(cells: Cells) -> None:
    without_three(cells)
    house = cells.house
    asyncio.run(_loaded(cells, {house.owners[0]: 70, house.owners[1]: 60}))
    plan = cells.carteiro("cells", "plan")
    assert plan == f"{house.email} one two\n"
    [said] = cells.carteiro("cells", "plan", "--json").splitlines()
    assert json.loads(said) == {"email": house.email, "from": "one", "to": "two", "load": 70}
    file = cells.folder / "plan.txt"
    file.write_text(f"# for balance\n\n{plan}")
    mine, other = map(fold_email, house.emails)
    for owner_id, email in zip(house.owners, (mine, other), strict=True):
        names(cells, "email", Name("email", email, "one", owner_id))
    # Again changes nothing.
    for _ in range(2):
        assert "Moved" in cells.carteiro("move", "--plan", str(file), "--rate", "3600")
        assert cells.states() == ["gone", "here"]
        assert {one.value: one.cell for one in names(cells, "email")} == {mine: "two", other: "one"}
        assert [(one.value, one.cell) for one in names(cells, "owner")] == [(house.mover, "two")]
    assert cells.carteiro("cells", "plan") == ""
    maps = cells.folder / "haproxy"
    maps.mkdir()
    cells.carteiro("cells", "map", "--folder", str(maps))
    moved = dict(line.split() for line in (maps / "moved.map").read_text().splitlines())
    assert moved[house.mover] == "two"
    assert moved[house.headers["X-API-Key"][:12]] == "two"
    hosts = dict(line.split() for line in (maps / "hosts.map").read_text().splitlines())
    assert hosts["two.example.com"] == "two"


def test_what_cannot_be_done(cells: Cells) -> None:
    (cells.folder / "short").write_text("# moves\nana@example.com one\n")
    for words, said in (
        (("cells", "map", "--folder", "missing"), "there is no folder missing"),
        (("cells", "push", "--folder", ".", "--socket", "none"), "none: No such file"),
        (("move", "--plan", "none"), "none cannot be read: No such file"),
        (("move", "--plan", "short"), "short, line 2: must be EMAIL FROM TO"),
        (("move", "--plan", "short", "--to", "two"), "leave the others out"),
        (("move",), "enter EMAIL and --to, or --plan"),
        (("cells", "plan"), "cell.peers has no config of three"),
    ):
        assert said in cells.carteiro(*words, status=1), words


def test_a_single_installation_has_no_cells(tmp_path: Path) -> None:
    done = command("cells", "list", folder=tmp_path)
    assert "this installation is no cell; set cell.name" in done.stderr
    assert done.returncode == 1
