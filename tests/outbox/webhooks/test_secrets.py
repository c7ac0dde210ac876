"""Secrets at rest: which values open, which do not, and the rules of the key file."""

import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file, write_key_file
from outbox.webhooks.secrets import KeyRing, SealBroken, parse_keys

IDS = Ids()
WALL = 1_760_000_000_000_000
OLD_LINE = "0a0b0c0d AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= 2026-01-01T00:00:00Z"


def ring(*lines: str) -> KeyRing:
    return parse_keys("\n".join(lines), IDS, "the keys")


RING = ring(OLD_LINE)


def test_a_value_moved_to_another_row_does_not_open() -> None:
    with pytest.raises(SealBroken):
        RING.open(RING.seal(b"secret", "row 1"), "row 2")


@given(st.data())
def test_a_damaged_value_does_not_open(data: st.DataObject) -> None:
    sealed = bytearray(RING.seal(b"secret", "row"))
    place = data.draw(st.integers(0, len(sealed) - 1))
    sealed[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SealBroken):
        RING.open(bytes(sealed), "row")


def test_a_written_file_is_read_back_and_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "keys"
    write_key_file(path, IDS, WALL)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert re.fullmatch(r"[0-9a-f]{8} \S{44} 2025-10-09T08:53:20Z\n", path.read_text())
    first = read_key_file(path, IDS)
    assert read_key_file(path, IDS).open(first.seal(b"secret", "row"), "row") == b"secret"


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    write_key_file(path, IDS, WALL)
    before = path.read_text()
    with pytest.raises(CannotStart, match="already exists"):
        write_key_file(path, IDS, WALL)
    assert path.read_text() == before


def test_a_file_open_to_everybody_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    write_key_file(path, IDS, WALL)
    for mode in (0o604, 0o602, 0o644):
        path.chmod(mode)
        with pytest.raises(CannotStart, match="chmod"):
            read_key_file(path, IDS)
    path.chmod(0o640)
    assert read_key_file(path, IDS)


def test_an_unwritable_place_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotStart, match="cannot be created"):
        write_key_file(tmp_path / "file" / "keys", IDS, WALL)
    with pytest.raises(CannotStart, match="cannot be written"):
        write_key_file(tmp_path / ("n" * 300), IDS, WALL)
    with pytest.raises(CannotStart, match="cannot be read"):
        read_key_file(tmp_path, IDS)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "contains no key"),
        ("# only a comment\n", "contains no key"),
        ("0a0b0c0d", "key line 1: write a key as"),
        (f"{OLD_LINE} more", "write a key as"),
        (OLD_LINE.replace("0a0b0c0d", "0A0B0C0D"), "8 lowercase hex digits"),
        (OLD_LINE.replace("AAEC", "AAE"), "must be 32 bytes"),
        (OLD_LINE.replace("AAECAwQF", ""), "must be 32 bytes"),
        (OLD_LINE.replace("2026-01-01T00:00:00Z", "yesterday"), "no valid creation time"),
        (OLD_LINE.replace("Z", ""), "no time zone"),
        (f"{OLD_LINE}\n\nwrong", "key line 3"),
        (f"{OLD_LINE}\n{OLD_LINE}", "same key id twice"),
    ],
)
def test_malformed_keys_are_one_clear_line(text: str, fault: str) -> None:
    with pytest.raises(CannotStart, match=fault) as refused:
        parse_keys(text, IDS, "the keys")
    assert "\n" not in str(refused.value)
    assert "AwQFBgcICQo" not in str(refused.value), "a key must not reach a message"
