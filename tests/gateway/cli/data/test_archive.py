"""The file of a backup: every damage of it is found, in one line."""

from __future__ import annotations

import zlib
from pathlib import Path

import msgspec
import pytest

from gateway.cli.data import archive as archives
from gateway.cli.data.archive import (
    FAST,
    HEAD,
    LARGEST_BLOCK,
    MAGIC,
    ArchiveReader,
    ArchiveWriter,
    Manifest,
)
from outbox.database.transfer import Applied, Column, Table
from outbox.errors import CannotStart

TABLES = (
    Table("cups", (Column("id", "integer"), Column("name", "text")), 2),
    Table("lids", (Column("digest", "bytes"), Column("open", "boolean")), 1, 7),
    Table("none", (Column("id", "integer"),), 0),
)
ROWS: dict[str, list[tuple[object, ...]]] = {
    "cups": [(1, "a"), (2**63 - 1, None)],
    "lids": [(b"\x00\xff", True)],
}
MANIFEST = Manifest(
    5, "0.1.0", "sqlite", (Applied("outbox", 1, "0001_outbox", "abc"),), TABLES, ("01234567",)
)


def written(file: Path, counts: dict[str, int] | None = None) -> list[int]:
    """Write a backup; return where its blocks end."""
    places = []
    with file.open("wb", buffering=0) as handle:
        archive = ArchiveWriter(handle, str(file), MANIFEST)
        places += [len(MAGIC), handle.tell()]
        for table, rows in ROWS.items():
            archive.table(table)
            places.append(handle.tell())
            archive.rows(rows)
            places.append(handle.tell())
        size = archive.end(counts or {"cups": 2, "lids": 1, "none": 0})
    assert size == file.stat().st_size
    return [*places, size]


def fault(file: Path) -> str:
    """Read the file to its end; return the error, which is one line."""
    with pytest.raises(CannotStart) as found:
        read(file)
    assert "\n" not in str(found.value)
    assert str(file) in str(found.value)
    return str(found.value)


def read(file: Path) -> dict[str, list[tuple[object, ...]]]:
    archive = ArchiveReader(file)
    try:
        found: dict[str, list[tuple[object, ...]]] = {}
        for table, rows in archive.rows():
            found.setdefault(table.name, []).extend(rows)
        return found
    finally:
        archive.close()


def test_a_file_cut_anywhere_is_truncated(tmp_path: Path) -> None:
    file = tmp_path / "b"
    [*ends, size] = written(file)
    whole = file.read_bytes()
    cuts = {1, 5, size - 1, *ends, *(end + 3 for end in ends), *(end + HEAD.size for end in ends)}
    for cut in sorted(cuts):
        file.write_bytes(whole[:cut])
        assert "is truncated or damaged" in fault(file), cut
    file.write_bytes(b"")
    assert "is empty, not a backup" in fault(file)


def test_each_flipped_byte_is_found(tmp_path: Path) -> None:
    file = tmp_path / "b"
    written(file)
    whole = bytearray(file.read_bytes())
    for place in range(len(whole)):
        whole[place] ^= 0x40
        file.write_bytes(whole)
        fault(file)
        whole[place] ^= 0x40
    file.write_bytes(whole)
    assert read(file) == ROWS


def test_a_block_that_is_missing_or_repeated_is_found(tmp_path: Path) -> None:
    file = tmp_path / "b"
    ends = written(file)
    whole = file.read_bytes()
    blocks = [whole[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    for place in range(1, len(blocks)):
        file.write_bytes(b"".join(blocks[:place] + blocks[place + 1 :]))
        fault(file)
        file.write_bytes(b"".join([*blocks[:place], blocks[place], *blocks[place:]]))
        fault(file)


def test_rows_that_are_missing_are_found(tmp_path: Path) -> None:
    written(tmp_path / "b", {"cups": 3, "lids": 1, "none": 0})
    assert "is damaged" in fault(tmp_path / "b")


@pytest.mark.parametrize(
    ("start", "told"),
    [
        (b"SQLite format 3\0" + b"\0" * 100, "is an SQLite database, not a backup"),
        (b"PGDMP" + b"\0" * 100, "is a dump of pg_dump, not a backup"),
        (b"hello", "is not a backup"),
        (b"carteiro backup 2\n" + b"\0" * 100, "is from a newer program"),
    ],
)
def test_a_foreign_file_is_named(tmp_path: Path, start: bytes, told: str) -> None:
    (tmp_path / "b").write_bytes(start)
    assert told in fault(tmp_path / "b")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert "No such file" in fault(tmp_path / "b")


@pytest.mark.parametrize(
    "rows",
    [b"\x91" * 100_000 + b"\x01", b"\x91\x91\xa1\xff", b"\xdd\xff\xff\xff\xff", b"\x93\x91", b""],
    ids=["deep", "no UTF-8", "a huge count", "cut", "nothing"],
)
def test_rows_that_somebody_made_up_are_damage(tmp_path: Path, rows: bytes) -> None:
    forge(tmp_path / "b", zlib.compress(rows))
    assert "is damaged" in fault(tmp_path / "b")


def test_a_block_that_would_fill_the_memory_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "LARGEST_BLOCK", 2**20)
    bomb = [(1, "a" * 2**23)]
    forge(tmp_path / "b", zlib.compress(msgspec.msgpack.encode(bomb)))
    assert "is damaged" in fault(tmp_path / "b")
    fitting = [(1, "a" * 2**19)]
    forge(tmp_path / "b", zlib.compress(msgspec.msgpack.encode(fitting), FAST))
    assert read(tmp_path / "b") == {"cups": fitting}


def test_large_rows_go_into_blocks_that_a_reader_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert archives.LARGEST_ROWS < LARGEST_BLOCK
    monkeypatch.setattr(archives, "LARGEST_ROWS", 1_000)
    monkeypatch.setattr(archives, "LARGEST_BLOCK", 2_500)
    rows: list[tuple[object, ...]] = [(n, "x" * 150 * n) for n in range(15)]
    with (tmp_path / "b").open("wb", buffering=0) as handle:
        archive = ArchiveWriter(handle, "b", MANIFEST)
        archive.table("cups")
        archive.rows(rows)
        archive.end({"cups": len(rows), "lids": 0, "none": 0})
    assert read(tmp_path / "b") == {"cups": rows}


def forge(file: Path, rows: bytes) -> None:
    """Write a backup with these rows, compressed already, and a true digest."""
    with file.open("wb", buffering=0) as handle:
        archive = ArchiveWriter(handle, str(file), MANIFEST)
        archive.table("cups")
        archive.add_packed(b"R", rows)
        archive.end({"cups": 1, "lids": 0, "none": 0})
