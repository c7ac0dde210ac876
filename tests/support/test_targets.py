"""What `make test` leaves out."""

import pytest

from tests.architecture.tree import ROOT
from tests.support.targets import DOORS, ENVIRONMENTS, PROCESSES, is_extended


@pytest.mark.parametrize("path", [*DOORS, *ENVIRONMENTS, *PROCESSES])
def test_each_place_of_the_rule_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_doors_are_extended_on_postgres_alone() -> None:
    door, engine = "tests/gateway/rest/test_lists.py::test_a", "tests/outbox/test_alone.py::test_a"
    assert is_extended(door, on_postgres=True, slow=False)
    assert not is_extended(door, on_postgres=False, slow=True)
    assert not is_extended(engine, on_postgres=True, slow=True)


def test_only_slow_tests_of_processes_are_extended() -> None:
    kills = "tests/system/test_kills.py::test_a"
    assert is_extended(kills, on_postgres=False, slow=True)
    assert not is_extended(kills, on_postgres=True, slow=False)
