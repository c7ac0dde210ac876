"""The file of a backup: a line that names it, then blocks that each vouch for all before them.

A block is one letter, the length of its content (4 bytes), a digest (16 bytes) and the content:
MessagePack, compressed by zlib. M is the manifest and comes first, T begins a table, R has rows of
it, E has the number of rows per table and comes last.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from outbox.database.transaction import Engine
from outbox.database.transfer import Applied, Table
from outbox.errors import CannotStart

NAME = b"carteiro backup "
VERSION = b"1"
MAGIC = NAME + VERSION + b"\n"
DIGEST = 16
HEAD = struct.Struct(f">cI{DIGEST}s")
FAST = 1
"""zlib's level 1 takes half the time of the default and a tenth more space."""
LARGEST_ROWS = 16 * 2**20
"""Rows of more bytes go into several blocks; a single row may be larger."""
LARGEST_BLOCK = 256 * 2**20
"""The content of no block is larger; a file that is made to fill the memory claims so."""
OTHERS = {b"SQLite format 3": "an SQLite database", b"PGDMP": "a dump of pg_dump"}


class Manifest(msgspec.Struct, frozen=True):
    """What a backup is: its time (microseconds UTC), its schema and its tables.

    `key_ids` name the keys that encrypt secrets in it; `keys` are these keys if they are in it.
    """

    made_at: int
    version: str
    engine: Engine
    migrations: tuple[Applied, ...]
    tables: tuple[Table, ...]
    key_ids: tuple[str, ...]
    keys: str | None = None


class ArchiveWriter:
    """Writes blocks to an open, unbuffered file. Raise CannotStart when it takes no more."""

    def __init__(self, handle: IO[bytes], name: str, manifest: Manifest) -> None:
        self._handle = handle
        self._name = name
        self._size = 0
        self._digest = b""
        self._put(MAGIC)
        self._block(b"M", manifest)

    def table(self, name: str) -> None:
        """Begin a table."""
        self._block(b"T", name)

    def rows(self, rows: Sequence[Sequence[Any]]) -> None:
        """Add rows to the table."""
        content = msgspec.msgpack.encode(rows)
        if len(content) > LARGEST_ROWS and len(rows) > 1:
            half = len(rows) // 2
            self.rows(rows[:half])
            self.rows(rows[half:])
        else:
            self._put_block(b"R", content)

    def end(self, counts: Mapping[str, int]) -> int:
        """Finish the file and bring it to the disk; return its size in bytes."""
        self._block(b"E", counts)
        try:
            os.fsync(self._handle.fileno())
        except OSError as error:
            raise self._cannot(error) from error
        return self._size

    def _block(self, letter: bytes, content: Any) -> None:
        self._put_block(letter, msgspec.msgpack.encode(content))

    def _put_block(self, letter: bytes, content: bytes) -> None:
        self.add_packed(letter, zlib.compress(content, FAST))

    def add_packed(self, letter: bytes, packed: bytes) -> None:
        """Add a block that is compressed already."""
        self._digest = _digest(self._digest, letter, packed)
        self._put(HEAD.pack(letter, len(packed), self._digest))
        self._put(packed)

    def _put(self, data: bytes) -> None:
        self._size += len(data)
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._handle.write(rest) :]
        except OSError as error:
            raise self._cannot(error) from error

    def _cannot(self, error: OSError) -> CannotStart:
        return CannotStart(f"cannot write {self._name}: {error.strerror}; nothing is kept")


class ArchiveReader:
    """Reads a backup. Each method raises CannotStart for a file that is not whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._handle = path.open("rb")
        except OSError as error:
            raise CannotStart(f"cannot read {path}: {error.strerror}") from None
        self.size = os.fstat(self._handle.fileno()).st_size
        self._digest = b""
        try:
            self._check_name()
            letter, content = self._block()
            if letter != b"M":
                raise self._damaged()
            self.manifest: Manifest = self._decoded(content, Manifest)
        except BaseException:
            self.close()
            raise

    @property
    def place(self) -> int:
        """The number of bytes read so far."""
        return self._handle.tell()

    def close(self) -> None:
        self._handle.close()

    def rows(self) -> Iterator[tuple[Table, list[tuple[Any, ...]]]]:
        """Return the rows in batches with their tables; at the end all of them are checked."""
        tables = {table.name: table for table in self.manifest.tables}
        counts: dict[str, int] = {}
        table: Table | None = None
        while True:
            letter, content = self._block()
            if letter == b"T":
                table = tables.get(self._decoded(content, str))
            elif letter == b"R" and table is not None:
                rows = self._decoded(content, list[tuple[Any, ...]])
                counts[table.name] = counts.get(table.name, 0) + len(rows)
                yield table, rows
            elif letter == b"E":
                if self._decoded(content, dict[str, int]) != {**dict.fromkeys(tables, 0), **counts}:
                    raise self._damaged()
                if self._handle.read(1):
                    raise CannotStart(f"{self._path} is damaged: it goes on after its end")
                return
            else:
                raise self._damaged()

    def _check_name(self) -> None:
        start = self._handle.read(len(MAGIC))
        if start == MAGIC:
            return
        if not start:
            raise CannotStart(f"{self._path} is empty, not a backup")
        if MAGIC.startswith(start):
            raise self._truncated()
        if start.startswith(NAME):
            raise CannotStart(f"{self._path} is from a newer program; restore it with that one")
        for name, kind in OTHERS.items():
            if start.startswith(name):
                raise CannotStart(f"{self._path} is {kind}, not a backup of `carteiro backup`")
        raise CannotStart(f"{self._path} is not a backup of `carteiro backup`")

    def _block(self) -> tuple[bytes, bytes]:
        head = self._handle.read(HEAD.size)
        if len(head) < HEAD.size:
            raise self._truncated()
        letter, size, digest = HEAD.unpack(head)
        if size > self.size - self._handle.tell():
            # A damaged length also leads here, and so does a file that is still being copied.
            raise self._truncated()
        packed = self._handle.read(size)
        self._digest = _digest(self._digest, letter, packed)
        if digest != self._digest:
            raise self._damaged()
        return letter, packed

    def _decoded(self, packed: bytes, kind: Any) -> Any:
        unpacking = zlib.decompressobj()
        try:
            content = unpacking.decompress(packed, LARGEST_BLOCK)
            if not unpacking.eof or unpacking.unused_data:
                raise self._damaged()
            return msgspec.msgpack.decode(content, type=kind)
        except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            raise self._damaged() from None

    def _damaged(self) -> CannotStart:
        return CannotStart(
            f"{self._path} is damaged before byte {self._handle.tell()}; use another backup"
        )

    def _truncated(self) -> CannotStart:
        return CannotStart(
            f"{self._path} is truncated or damaged: its end is missing after byte "
            f"{self._handle.tell()} of {self.size}; use another backup"
        )


def _digest(before: bytes, letter: bytes, packed: bytes) -> bytes:
    digest = hashlib.blake2b(before, digest_size=DIGEST)
    digest.update(letter)
    digest.update(packed)
    return digest.digest()
