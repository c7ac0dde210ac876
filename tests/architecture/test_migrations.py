"""A migration that was released is never edited: databases in use have it as it was."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from outbox.database.migration_files import DIGESTS, read_migrations, released_digests
from tests.support.databases import SOURCES


@pytest.mark.parametrize(("component", "folder"), SOURCES, ids=[name for name, _ in SOURCES])
def test_each_migration_has_the_digests_that_are_listed(component: str, folder: Path) -> None:
    listed = released_digests(folder)
    migrations = read_migrations(component, folder)
    for migration in migrations:
        statements, texts = listed.get(migration.name, ("", frozenset[str]()))
        digest = hashlib.sha256(migration.text.encode()).hexdigest()
        assert (statements, digest in texts) == (migration.checksum, True), (
            f"{component} {migration.name} differs from the list. If it was released, restore the "
            f"file and write a new migration. If it is new, its line in {DIGESTS} is:\n"
            f"{migration.name} {migration.checksum} {digest}"
        )
    assert list(listed) == [migration.name for migration in migrations]
