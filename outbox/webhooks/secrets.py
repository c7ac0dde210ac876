"""Encrypt secrets at rest: AES-256-GCM with a ring of keys, each value bound to its row.

The key file has one key per line, `id base64-key created-at`; `#` starts a comment. The newest key
encrypts and every key decrypts, so adding a key and encrypting values again replaces an old key.
"""

import binascii
import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from outbox import private_files
from outbox.errors import CannotStart, OutboxError
from outbox.ids import Ids

KEY_BYTES = 32
NONCE_BYTES = 12
ID_BYTES = 4
READABLE_BY_ALL = stat.S_IRWXO
MAKE_ONE = "create one with: carteiro secrets init"
KEY_ID = re.compile("[0-9a-f]{8}")


class SealBroken(OutboxError):
    """An encrypted value cannot be decrypted: it belongs to another row or key, or is damaged."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the ring. `created_at` is microseconds UTC."""

    key_id: str
    secret: bytes
    created_at: int

    def __repr__(self) -> str:
        return f"Key({self.key_id})"


class KeyRing:
    """Encrypts with its newest key and decrypts with any of its keys."""

    def __init__(self, keys: Iterable[Key], random: Callable[[int], bytes]) -> None:
        ring = sorted(keys, key=lambda key: key.created_at)
        self.newest = ring[-1].key_id
        self.newest_at = ring[-1].created_at
        self.key_ids = tuple(key.key_id for key in ring)
        self._random = random
        self._ciphers = {bytes.fromhex(key.key_id): AESGCM(key.secret) for key in ring}
        self._secrets = {key.key_id: key.secret for key in ring}

    def seal(self, plain: bytes, row_id: str) -> bytes:
        """Encrypt `plain` for the row: key id (4 bytes), nonce (12), ciphertext and tag."""
        key_id = bytes.fromhex(self.newest)
        nonce = self._random(NONCE_BYTES)
        return key_id + nonce + self._ciphers[key_id].encrypt(nonce, plain, row_id.encode())

    def open(self, sealed: bytes, row_id: str) -> bytes:
        """Decrypt a value of `seal`. Raise SealBroken."""
        key_id, nonce = sealed[:ID_BYTES], sealed[ID_BYTES : ID_BYTES + NONCE_BYTES]
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise SealBroken(f"the key {key_id.hex()} that encrypted this value is not in the ring")
        try:
            return cipher.decrypt(nonce, sealed[ID_BYTES + NONCE_BYTES :], row_id.encode())
        except (InvalidTag, ValueError):
            raise SealBroken("this value was encrypted for another row or is damaged") from None

    def derive(self, purpose: str) -> dict[str, bytes]:
        """Return a key of 32 bytes for `purpose` from each key of the ring, by its id."""
        return {
            key_id: HKDF(SHA256(), KEY_BYTES, None, purpose.encode()).derive(secret)
            for key_id, secret in self._secrets.items()
        }

    def stale(self, sealed: bytes) -> bool:
        """Return whether the ring has a newer key than the one that encrypted this value."""
        return sealed[:ID_BYTES].hex() != self.newest


def parse_keys(text: str, ids: Ids, source: str) -> KeyRing:
    """Parse the keys of `text` (one per line, or separated by commas).

    `source` names the text in errors. Raise CannotStart.
    """
    keys: list[Key] = []
    for number, line in enumerate(re.split("[\n,]", text), start=1):
        entry = line.partition("#")[0].split()
        if entry:
            try:
                keys.append(_key(entry))
            except ValueError as error:
                raise CannotStart(f"{source}, key line {number}: {error}") from None
    if not keys:
        raise CannotStart(f"{source} contains no key; {MAKE_ONE}")
    if len({key.key_id for key in keys}) < len(keys):
        raise CannotStart(f"{source} contains the same key id twice")
    return KeyRing(keys, ids.token)


def read_key_file(path: str | Path, ids: Ids) -> KeyRing:
    """Read the key file at `path`. Raise CannotStart: missing, malformed, world-readable."""
    file = Path(path)
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
        text = content.decode("ascii")
    except UnicodeDecodeError:
        raise CannotStart(f"the key file {file} is not plain text") from None
    return parse_keys(text, ids, f"the key file {file}")


def write_key_file(path: str | Path, ids: Ids, wall: int) -> None:
    """Create a key file with one new key, readable only by its owner.

    `wall` is microseconds UTC. Raise CannotStart; never replace an existing file, because values
    encrypted with its keys would be lost.
    """
    file = Path(path)
    try:
        if not file.parent.is_dir():
            file.parent.mkdir(private_files.FOLDER, parents=True)
    except OSError as error:
        raise CannotStart(f"the folder {file.parent} cannot be created: {error.strerror}") from None
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, private_files.FILE)
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(new_key_line(ids, wall).encode("ascii"))
            handle.flush()
            os.fsync(handle.fileno())
    except FileExistsError:
        raise CannotStart(
            f"{file} already exists; it is kept, because its keys are needed"
        ) from None
    except OSError as error:
        raise CannotStart(f"the key file {file} cannot be written: {error.strerror}") from None


def new_key_line(ids: Ids, wall: int) -> str:
    """Return a line with a new key, to add to a key file."""
    secret = binascii.b2a_base64(ids.token(KEY_BYTES), newline=False).decode("ascii")
    created = datetime.fromtimestamp(wall // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{ids.token(ID_BYTES).hex()} {secret} {created}\n"


def _key(entry: list[str]) -> Key:
    if len(entry) != 3:
        raise ValueError("write a key as: id base64-key created-at")
    key_id, encoded, created = entry
    if not KEY_ID.fullmatch(key_id):
        raise ValueError("a key id must be 8 lowercase hex digits")
    try:
        secret = binascii.a2b_base64(encoded, strict_mode=True)
    except binascii.Error:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise ValueError(f"the key {key_id} must be {KEY_BYTES} bytes in base64")
    try:
        created_at = datetime.fromisoformat(created)
    except ValueError:
        raise ValueError(f"the key {key_id} has no valid creation time") from None
    if created_at.tzinfo is None:
        raise ValueError(f"the creation time of key {key_id} has no time zone")
    return Key(key_id, secret, round(created_at.timestamp() * 1_000_000))
