"""Encrypt secrets at rest: AES-256-GCM with a ring of keys, each value bound to its row.

The key file has one key per line, `id base64-key created-at`; `#` starts a comment. The newest key
encrypts and every key decrypts, so adding a key and encrypting values again replaces an old key.
A key whose line ends with `staged` only decrypts, until every node has it.
"""

import binascii
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from outbox.durations import SECOND
from outbox.errors import CannotStart, OutboxError
from outbox.ids import Ids

KEY_BYTES = 32
NONCE_BYTES = 12
ID_BYTES = 4
MAKE_ONE = "create one with: carteiro secrets init"
KEY_ID = re.compile("[0-9a-f]{8}")

log = structlog.get_logger("outbox")


class SealBroken(OutboxError):
    """An encrypted value cannot be decrypted: it belongs to another row or key, or is damaged."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the ring. `created_at` is microseconds UTC; a `staged` key does not encrypt."""

    key_id: str
    secret: bytes
    created_at: int
    staged: bool = False

    def __repr__(self) -> str:
        return f"Key({self.key_id})"


class KeyRing:
    """Encrypts with its newest key that is not staged, and decrypts with any of its keys.

    `changed` returns the keys when their file has changed since they were read, else None. A file
    that lacks the key that encrypts now is refused: it may be that of another installation. It is
    taken all the same when one of its keys has decrypted a stored value.
    """

    def __init__(
        self,
        keys: Iterable[Key],
        random: Callable[[int], bytes],
        changed: Callable[[], Sequence[Key] | None] = lambda: None,
    ) -> None:
        self._random = random
        self._changed = changed
        self._refused: dict[bytes, Key] = {}
        self._take(keys)

    @property
    def refused(self) -> bool:
        """Whether the key file has changed and lacks the key that encrypts."""
        return bool(self._refused)

    def _take(self, keys: Iterable[Key]) -> None:
        self._refused = {}
        ring = sorted(keys, key=lambda key: (not key.staged, key.created_at))
        self.newest = ring[-1].key_id
        self.newest_at = ring[-1].created_at
        self.key_ids = tuple(key.key_id for key in ring)
        self.staged_ids = tuple(key.key_id for key in ring if key.staged)
        self._ciphers = {bytes.fromhex(key.key_id): AESGCM(key.secret) for key in ring}
        self._secrets = {key.key_id: key.secret for key in ring}

    def refresh(self) -> None:
        """Take the keys from their file if it has changed, as after `carteiro secrets rotate`."""
        keys = self._changed()
        if keys is None:
            return
        if any(
            key.key_id == self.newest and key.secret == self._secrets[self.newest] for key in keys
        ):
            self._take(keys)
        else:
            self._refused = {bytes.fromhex(key.key_id): key for key in keys}
            log.error("key_file_refused", missing=self.newest)

    def newest_key_at(self) -> int:
        """Return when the key that encrypts now was made, microseconds UTC."""
        self.refresh()
        return self.newest_at

    def seal(self, plain: bytes, row_id: str) -> bytes:
        """Encrypt `plain` for the row: key id (4 bytes), nonce (12), ciphertext and tag."""
        self.refresh()
        key_id = bytes.fromhex(self.newest)
        nonce = self._random(NONCE_BYTES)
        return key_id + nonce + self._ciphers[key_id].encrypt(nonce, plain, row_id.encode())

    def open(self, sealed: bytes, row_id: str) -> bytes:
        """Decrypt a value of `seal`. Raise SealBroken."""
        key_id = sealed[:ID_BYTES]
        if key_id not in self._ciphers:
            self.refresh()
        cipher = self._ciphers.get(key_id)
        if cipher is None and key_id in self._refused:
            plain = _decrypt(AESGCM(self._refused[key_id].secret), sealed, row_id)
            self._take(self._refused.values())
            return plain
        if len(sealed) < ID_BYTES + NONCE_BYTES:
            raise SealBroken("it is damaged")
        if cipher is None:
            raise SealBroken(f"the key {key_id.hex()} is missing from the key file")
        return _decrypt(cipher, sealed, row_id)

    def derive(self, purpose: str) -> dict[str, bytes]:
        """Return a key of 32 bytes for `purpose` from each key of the ring, by its id."""
        return {
            key_id: HKDF(SHA256(), KEY_BYTES, None, purpose.encode()).derive(secret)
            for key_id, secret in self._secrets.items()
        }

    def stale(self, sealed: bytes) -> bool:
        """Return whether the ring has a newer key than the one that encrypted this value."""
        return sealed[:ID_BYTES].hex() != self.newest


def _decrypt(cipher: AESGCM, sealed: bytes, row_id: str) -> bytes:
    nonce = sealed[ID_BYTES : ID_BYTES + NONCE_BYTES]
    try:
        return cipher.decrypt(nonce, sealed[ID_BYTES + NONCE_BYTES :], row_id.encode())
    except (InvalidTag, ValueError):
        raise SealBroken(
            f"it is damaged, or the key {sealed[:ID_BYTES].hex()} in the key file is another one"
        ) from None


def parse_keys(text: str, ids: Ids, source: str) -> KeyRing:
    """Parse the keys of `text` (one per line, or separated by commas).

    `source` names the text in errors. Raise CannotStart.
    """
    return KeyRing(keys_of(text, source), ids.token)


def keys_of(text: str, source: str) -> list[Key]:
    """Return the keys of `text`, of which at least one encrypts. Raise CannotStart."""
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
    if all(key.staged for key in keys):
        raise CannotStart(f"{source} contains only staged keys, which do not encrypt")
    return keys


def new_key_line(ids: Ids, wall: int) -> str:
    """Return a line with a new key, to add to a key file."""
    secret = binascii.b2a_base64(ids.token(KEY_BYTES), newline=False).decode("ascii")
    created = datetime.fromtimestamp(wall // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{ids.token(ID_BYTES).hex()} {secret} {created}\n"


def _key(entry: list[str]) -> Key:
    staged = entry[3:] == ["staged"]
    if len(entry) != 3 + staged:
        raise ValueError("write a key as: id base64-key created-at")
    key_id, encoded, created = entry[:3]
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
    return Key(key_id, secret, round(created_at.timestamp() * SECOND), staged)
