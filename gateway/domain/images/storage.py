"""Stores the files of images in a folder."""

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Protocol


class StorageUnavailable(Exception):
    """A file could not be stored, read or deleted; the text says why."""


class Storage(Protocol):
    """Where the files of images are. Each method may raise StorageUnavailable."""

    async def put(self, name: str, data: bytes, media_type: str) -> None:
        """Store a file; it is there as a whole or not at all."""

    async def get(self, name: str) -> bytes | None:
        """Return a file, None when there is none."""

    async def delete(self, name: str) -> None:
        """Delete a file if it is there."""

    async def close(self) -> None:
        """Close connections."""


class Folder:
    """Stores files in a folder, which all nodes share where there are several."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def put(self, name: str, data: bytes, media_type: str) -> None:
        try:
            await asyncio.to_thread(_write, self._file(name), data)
        except OSError as error:
            raise StorageUnavailable(f"cannot write to {self._path}: {error.strerror}") from error

    async def get(self, name: str) -> bytes | None:
        try:
            return await asyncio.to_thread(self._file(name).read_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageUnavailable(f"cannot read {self._path}: {error.strerror}") from error

    async def delete(self, name: str) -> None:
        try:
            await asyncio.to_thread(_remove, self._file(name))
        except OSError as error:
            raise StorageUnavailable(f"cannot delete in {self._path}: {error.strerror}") from error

    async def close(self) -> None:
        """Nothing is open."""

    def _file(self, name: str) -> Path:
        # Few files each, whatever the number of images.
        return self._path / name[:2] / name


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".new-{file.name}-")
    try:
        with os.fdopen(handle, "wb") as writing:
            writing.write(data)
            writing.flush()
            os.fsync(writing.fileno())
        os.replace(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    # The name of the file, too, must outlive a power cut.
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _remove(file: Path) -> None:
    """Delete a file, and what servers have left of it that were ended while they wrote."""
    file.unlink(missing_ok=True)
    for left in file.parent.glob(f".new-{file.name}-*"):
        left.unlink(missing_ok=True)
