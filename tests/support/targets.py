"""Which target runs a test: `make test` shows that the code is right, `make proof` all else.

What shows the same once more in another environment, or at full size, is marked `proof`, by hand or
by its place:

- Folders whose subject is a process, a machine or another program: faults, deployment, benchmarks.
- Tests of other languages, frameworks, generated clients, and pictures.
- Doors and the browser on PostgreSQL: `make test` runs them on SQLite, the engine and the records
  on both.

`slow` is another matter: it keeps a test out of `make test-fast` alone.
"""

from __future__ import annotations

import pytest

PLACES = (
    "tests/benchmarks/",
    "tests/browser/test_pictures.py",
    "tests/dashboards/test_live.py",
    "tests/dashboards/test_pictures.py",
    "tests/deploy/",
    "tests/docs/test_examples.py",
    "tests/docs/test_generated_clients.py",
    "tests/docs/test_receivers.py",
    "tests/docs/test_recipes.py",
    "tests/docs/test_typed_clients.py",
    "tests/system/",
)
"""All tests here are proofs."""

DOORS = (
    "tests/browser/",
    "tests/gateway/cli/",
    "tests/gateway/console/",
    "tests/gateway/graphql/",
    "tests/gateway/rest/",
    "tests/gateway/server/",
)
"""On PostgreSQL these are proofs."""


def is_proof(path: str, *, on_postgres: bool) -> bool:
    """Return whether the place of a test leaves it out of `make test`."""
    return path.startswith(PLACES) or (on_postgres and path.startswith(DOORS))


def mark_proofs(items: list[pytest.Item]) -> None:
    """Mark the tests that `make test` leaves out because of their place."""
    for item in items:
        case = getattr(item, "callspec", None)
        on_postgres = case is not None and "postgres" in map(str, case.params.values())
        if is_proof(item.nodeid, on_postgres=on_postgres):
            item.add_marker(pytest.mark.proof)
