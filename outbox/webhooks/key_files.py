"""The key file: read it, follow its changes, create it, and add a key to it.

outbox.webhooks.secrets describes its lines.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from outbox import private_files
from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.webhooks.secrets import MAKE_ONE, Key, KeyRing, keys_of, new_key_line

READABLE_BY_ALL = stat.S_IRWXO
STAGED = " staged"


class KeyFile:
    """The key file at `path`, which is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int, int] | None = None

    def read(self) -> list[Key]:
        """Return the keys. Raise CannotStart: missing, malformed, world-readable."""
        self._seen = self._mark()
        return keys_of(text_of(self._path), f"the key file {self._path}")

    def changed(self) -> Sequence[Key] | None:
        """Return the keys if the file has changed since the last call, and None if not.

        A file that cannot be read changes nothing: the known keys stay in use.
        """
        if self._mark() == self._seen:
            return None
        try:
            return self.read()
        except CannotStart:
            return None

    def _mark(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size


def read_key_file(path: str | Path, ids: Ids) -> KeyRing:
    """Return the ring of the key file at `path`, which follows its changes. Raise CannotStart."""
    file = KeyFile(Path(path))
    return KeyRing(file.read(), ids.token, file.changed)


def text_of(file: Path) -> str:
    """Return the text of a key file. Raise CannotStart: missing, unreadable, world-readable."""
    try:
        with file.open("rb") as handle:
            mode = os.fstat(handle.fileno()).st_mode
            content = handle.read()
    except FileNotFoundError:
        raise CannotStart(f"the key file {file} does not exist; {MAKE_ONE}") from None
    except OSError as error:
        raise CannotStart(f"the key file {file} cannot be read: {error.strerror}") from None
    if mode & READABLE_BY_ALL:
        raise CannotStart(f"the key file {file} is readable by every user; run: chmod o-rwx {file}")
    try:
        return content.decode("ascii")
    except UnicodeDecodeError:
        raise CannotStart(f"the key file {file} is not plain text") from None


def write_key_file(path: str | Path, ids: Ids, wall: int) -> None:
    """Create a key file with one new key; `wall` is microseconds UTC. Raise CannotStart."""
    put_key_file(path, new_key_line(ids, wall))


def must_be_new(path: str | Path) -> None:
    """Raise CannotStart when there is a file at `path`."""
    if Path(path).exists():
        raise CannotStart(f"{path} already exists; it is kept, because its keys are needed")


def put_key_file(path: str | Path, text: str) -> None:
    """Create a key file with this text, readable only by its owner.

    Raise CannotStart; never replace an existing file, because values encrypted with its keys would
    be lost, and leave no part of a file.
    """
    file = Path(path)
    try:
        if not file.parent.is_dir():
            file.parent.mkdir(private_files.FOLDER, parents=True)
    except OSError as error:
        raise CannotStart(f"the folder {file.parent} cannot be created: {error.strerror}") from None
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, private_files.FILE)
    except FileExistsError:
        raise CannotStart(
            f"{file} already exists; it is kept, because its keys are needed"
        ) from None
    except OSError as error:
        raise CannotStart(f"the key file {file} cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(text.encode("ascii"))
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        file.unlink(missing_ok=True)
        raise CannotStart(f"the key file {file} cannot be written: {error.strerror}") from None


def add_key(file: Path, ids: Ids, wall: int, *, staged: bool) -> None:
    """Add a new key to the file; a `staged` one only decrypts. Raise CannotStart."""
    text = text_of(file)
    # The newest key encrypts, also after the clock was set back; of two at once, the later line.
    newest = max(key.created_at for key in keys_of(text, f"the key file {file}"))
    line = new_key_line(ids, max(wall, newest))
    if staged:
        line = line.rstrip("\n") + STAGED + "\n"
    _replace(file, f"{text.rstrip()}\n{line}")


def activate_keys(file: Path) -> None:
    """Let the staged keys of the file encrypt. Raise CannotStart."""
    lines = []
    for line in text_of(file).splitlines():
        entry, mark, comment = line.partition("#")
        lines.append(entry.replace(STAGED, "") + mark + comment)
    _replace(file, "\n".join(lines) + "\n")


def _replace(file: Path, text: str) -> None:
    """Replace the content, so that after a crash it is the old one or the new one."""
    part = file.with_name(f"{file.name}.new")
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, private_files.FILE)
        with os.fdopen(number, "wb") as handle:
            os.fchmod(number, mode)
            handle.write(text.encode("ascii"))
            handle.flush()
            os.fsync(number)
        part.rename(file)
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError:
        raise CannotStart(
            f"{part} exists, so another command changes the key file or was killed; "
            f"if none runs, delete {part} and run the command again"
        ) from None
    except OSError as error:
        raise CannotStart(f"the key file {file} cannot be written: {error.strerror}") from None
