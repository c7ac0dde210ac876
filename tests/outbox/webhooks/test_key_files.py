"""The key file while it changes: staged keys, replacement, and rings that follow it."""

import os
import stat
from pathlib import Path

import pytest

from outbox.errors import CannotStart
from outbox.ids import Ids
from outbox.webhooks.key_files import activate_keys, add_key, read_key_file, write_key_file
from outbox.webhooks.secrets import KeyRing, SealBroken, parse_keys

IDS = Ids()
WALL = 1_760_000_000_000_000
DAY = 86_400_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    write_key_file(path, IDS, WALL)
    return path


def test_comments_and_the_mode_of_the_file_stay(file: Path) -> None:
    file.write_text("# keys of the shop\n" + file.read_text().rstrip() + "   # the first\n")
    file.chmod(0o640)
    add_key(file, IDS, WALL + DAY, staged=True)
    activate_keys(file)
    text = file.read_text()
    assert text.startswith("# keys of the shop\n")
    assert "   # the first\n" in text
    assert "staged" not in text
    assert len(read_key_file(file, IDS).key_ids) == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert os.listdir(file.parent) == ["keys"]


@pytest.mark.parametrize("damage", ["", "no key\n", "\xff"])
def test_a_damaged_file_leaves_a_running_node_its_keys(file: Path, damage: str) -> None:
    node = read_key_file(file, IDS)
    sealed = node.seal(b"x", "row")
    file.write_bytes(damage.encode("latin-1"))
    assert node.open(node.seal(b"y", "row"), "row") == b"y"
    assert node.open(sealed, "row") == b"x"
    file.unlink()
    assert node.open(node.seal(b"z", "row"), "row") == b"z"


def test_two_changes_at_once_are_refused(file: Path) -> None:
    before = file.read_text()
    file.with_name("keys.new").touch()
    with pytest.raises(CannotStart, match=r"delete \S+keys\.new"):
        add_key(file, IDS, WALL, staged=False)
    assert file.read_text() == before


def test_only_staged_keys_are_refused(file: Path) -> None:
    file.write_text(file.read_text().rstrip() + " staged\n")
    with pytest.raises(CannotStart, match="only staged"):
        read_key_file(file, IDS)


def refuses(node: KeyRing) -> bool:
    return node.refused


def test_a_running_node_refuses_the_file_of_another_installation(
    file: Path, tmp_path: Path
) -> None:
    node, own = read_key_file(file, IDS), file.read_text()
    other = tmp_path / "other"
    write_key_file(other, IDS, WALL + DAY)
    file.write_text(other.read_text())
    sealed = node.seal(b"x", "row")
    assert refuses(node)
    # What it seals meanwhile belongs to the database, not to the file.
    assert parse_keys(own, IDS, "the keys").open(sealed, "row") == b"x"
    assert node.open(sealed, "row") == b"x"
    with pytest.raises(SealBroken, match="damaged"):
        node.open(read_key_file(other, IDS).seal(b"y", "another row"), "row")
    assert refuses(node)
    file.write_text(own)
    node.refresh()
    assert not refuses(node)


def test_a_refused_file_is_taken_when_it_opens_a_stored_value(file: Path) -> None:
    """The node has slept while the key was replaced and the older one was removed."""
    node, first = read_key_file(file, IDS), file.read_text()
    add_key(file, IDS, WALL + DAY, staged=False)
    newer = file.read_text().removeprefix(first)
    file.write_text(newer)
    stored = read_key_file(file, IDS).seal(b"x", "row")
    node.refresh()
    assert refuses(node)
    assert node.open(stored, "row") == b"x"
    assert not refuses(node)
    assert node.newest == newer.split()[0]
