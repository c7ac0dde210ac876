"""A new file has its name only when it is complete, whatever else is in its folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from gateway.cli.data.unfinished import unfinished
from outbox.errors import CannotStart


def test_a_link_that_somebody_has_put_there_is_not_followed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_bytes(b"kept")
    (tmp_path / "b.part").symlink_to(theirs)
    with pytest.raises(CannotStart, match="cannot write"), unfinished(tmp_path / "b"):
        pass
    assert theirs.read_bytes() == b"kept"


def test_a_file_to_which_nothing_was_written_gets_no_name(tmp_path: Path) -> None:
    with unfinished(tmp_path / "b"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_its_writer_has_just_finished_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening the part and locking it, the other writer renames it and lets go."""
    (tmp_path / "b.part").write_bytes(b"complete")
    lock = fcntl.flock

    def finished_by_then(handle: int, how: int) -> None:
        os.rename(tmp_path / "b.part", tmp_path / "b")
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", finished_by_then)
    with pytest.raises(CannotStart, match="try again"), unfinished(tmp_path / "b"):
        pass
    assert (tmp_path / "b").read_bytes() == b"complete"
    assert not (tmp_path / "b.part").exists()
