"""Which target runs a test: mark as `extended` what `make test-all` runs beside `make test`.

The rule in words. `make test` shows that the code is right. What shows the same once more, in
another environment, is `extended`:

- Doors and browser run on SQLite daily; on PostgreSQL they are extended. The engine and the
  records run on both.
- Programs that others make (languages, proxies, Kubernetes, containers, Prometheus), and pictures.
- Faults that kill or fill a whole process, upgrades from each release, and commands that start
  processes again and again.
- Benchmarks in short form.

`slow` is another matter: it keeps a test out of `make test-fast` alone.
"""

from __future__ import annotations

import pytest

DOORS = (
    "tests/browser/",
    "tests/conformance/",
    "tests/gateway/cli/",
    "tests/gateway/console/",
    "tests/gateway/graphql/",
    "tests/gateway/rest/",
    "tests/gateway/server/",
)
"""On PostgreSQL these are extended."""

ENVIRONMENTS = (
    "tests/browser/test_pictures.py",
    "tests/dashboards/test_live.py",
    "tests/dashboards/test_pictures.py",
    "tests/deploy/test_image.py",
    "tests/deploy/test_kubernetes.py",
    "tests/deploy/test_proxies.py",
    "tests/deploy/test_release.py",
    "tests/deploy/test_sandbox.py",
    "tests/deploy/test_two_nodes.py",
    "tests/docs/test_examples.py",
    "tests/docs/test_receivers.py",
    "tests/docs/test_typed_clients.py",
    "tests/docs/test_vectors.py",
)
"""Extended on each engine."""

PROCESSES = ("tests/benchmarks/", "tests/gateway/cli/", "tests/system/")
"""Of these all tests that are slow are extended."""


def is_extended(path: str, *, on_postgres: bool, slow: bool) -> bool:
    """Return whether a test of the file at `path` is left out of `make test`."""
    return (
        path.startswith(ENVIRONMENTS)
        or (on_postgres and path.startswith(DOORS))
        or (slow and path.startswith(PROCESSES))
    )


def mark_extended(items: list[pytest.Item]) -> None:
    """Mark the tests that `make test` leaves out."""
    for item in items:
        case = getattr(item, "callspec", None)
        on_postgres = case is not None and "postgres" in map(str, case.params.values())
        slow = item.get_closest_marker("slow") is not None
        if is_extended(item.nodeid, on_postgres=on_postgres, slow=slow):
            item.add_marker(pytest.mark.extended)
