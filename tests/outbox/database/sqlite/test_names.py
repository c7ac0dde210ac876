"""One file by several names: its locks, its mark and what stands beside it are the same."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from gateway.server import startup
from gateway.server.config import Config
from gateway.server.config import Database as Settings
from outbox import database
from outbox.clock import SystemClock
from outbox.database.transaction import Database
from outbox.errors import CannotStart
from outbox.ids import Ids


async def served(path: Path | str) -> Database:
    return await database.open(f"sqlite:///{path}", clock=SystemClock(), ids=Ids(), serving=True)


async def refused(path: Path | str, told: str) -> None:
    with pytest.raises(CannotStart, match=told) as raised:
        await (await served(path)).close()
    assert "\n" not in str(raised.value)


def link(folder: Path) -> str:
    (folder / "link.db").symlink_to(folder / "one.db")
    return "link.db"


def relative(folder: Path) -> str:
    (folder / "sub").mkdir()
    (folder / "sub" / "link.db").symlink_to("../one.db")
    return "sub/link.db"


def link_to_link(folder: Path) -> str:
    (folder / "two.db").symlink_to(link(folder))
    return "two.db"


def folder_link(folder: Path) -> str:
    (folder / "volume").symlink_to(folder)
    return "volume/one.db"


def link_in_folder_link(folder: Path) -> str:
    relative(folder)
    (folder / "volume").symlink_to("sub")
    return "volume/link.db"


def handle(folder: Path) -> str:
    number = os.open(folder / "one.db", os.O_RDONLY)
    return f"/proc/self/fd/{number}"


def dots(folder: Path) -> str:
    return f"./../{folder.name}//one.db"


SAME: list[Callable[[Path], str]] = [
    link, relative, link_to_link, folder_link, link_in_folder_link, handle, dots,
]  # fmt: skip


@pytest.mark.parametrize("other", SAME)
async def test_another_name_leads_to_the_same_lock_mark_and_key(
    tmp_path: Path, other: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    db = await served(tmp_path / "one.db")
    name = other(tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    await refused(name, f"in use by server process {os.getpid()}")
    await db.close()
    # By the other name it serves, and the companions stay beside the file.
    by_other = await served(name)
    await refused(tmp_path / "one.db", "in use by")
    assert {path.name for path in tmp_path.iterdir()} == before
    await by_other.close()
    # The key and the mark belong to the file.
    config = Config(database=Settings(url=f"sqlite:///{name}"))
    assert startup.key_file(config).resolve() == tmp_path / "carteiro.key"
    (tmp_path / "one.db.copied").write_text("one.db was copied to postgresql://other/db\n")
    await refused(name, "was copied to postgresql://other/db")


async def test_a_dangling_link_makes_the_file_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to("one.db")
    db = await served(tmp_path / "link.db")
    await refused(tmp_path / "one.db", "in use by")
    await db.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.db", "one.db", "one.db.lock"]
    # Where the volume is not mounted, no folder is made.
    (tmp_path / "away.db").symlink_to("volume/one.db")
    config = Config(database=Settings(url=f"sqlite:///{tmp_path}/away.db"))
    with pytest.raises(CannotStart, match=f"there is no folder {tmp_path}/volume"):
        startup.must_have_folder(config)


async def test_a_file_with_hard_links_is_refused_by_each_name(tmp_path: Path) -> None:
    await (await served(tmp_path / "one.db")).close()
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere" / "two.db"
    os.link(tmp_path / "one.db", other)
    for name in ("one.db", "elsewhere/two.db"):
        await refused(tmp_path / name, r"has 2 names \(hard links\).+-samefile")
    other.unlink()
    await (await served(tmp_path / "one.db")).close()


async def test_a_file_that_moves_stays_locked(tmp_path: Path) -> None:
    """As with a mount, another path leads to the file without any link."""
    db = await served(tmp_path / "one.db")
    (tmp_path / "new").mkdir()
    (tmp_path / "one.db").rename(tmp_path / "new" / "one.db")
    await refused(tmp_path / "new" / "one.db", "a server that reaches it by another path")
    (tmp_path / "new" / "one.db").rename(tmp_path / "one.db")
    await db.close()
    await (await served(tmp_path / "one.db")).close()


async def test_what_an_older_release_left_beside_a_link_counts(tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "link.db").symlink_to("volume/one.db")
    (tmp_path / "carteiro.key").write_text("key\n")
    config = Config(database=Settings(url=f"sqlite:///{tmp_path}/link.db"))
    assert startup.key_file(config) == tmp_path / "carteiro.key"
    (tmp_path / "volume" / "carteiro.key").write_text("key\n")
    assert startup.key_file(config) == tmp_path / "volume" / "carteiro.key"
    # Its server holds the lock beside the link, and its mark stands there.
    import fcntl

    with (tmp_path / "link.db.lock").open("w") as old:
        fcntl.flock(old, fcntl.LOCK_EX)
        old.write("4711\n")
        old.flush()
        await refused(tmp_path / "link.db", "in use by server process 4711")
    (tmp_path / "link.db.copied").write_text("link.db was copied to postgresql://other/db\n")
    await refused(tmp_path / "link.db", "was copied to")


async def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "one.db")) as db:
        db.execute("pragma encoding = 'UTF-16'")
        db.execute("create table notes (text)")
    await refused(tmp_path / "one.db", "has the encoding UTF-16le; write it anew in UTF-8: `cart")


async def test_a_deleted_file_is_not_made_again_under_its_handle(tmp_path: Path) -> None:
    await (await served(tmp_path / "one.db")).close()
    name = handle(tmp_path)
    shutil.move(tmp_path / "one.db", tmp_path / "gone")
    (tmp_path / "gone").unlink()
    await refused(name, "was deleted")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.db.lock"]
