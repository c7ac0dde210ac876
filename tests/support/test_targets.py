"""What `make test` leaves out."""

import pytest

from tests.architecture.tree import ROOT
from tests.support.targets import DOORS, PLACES, is_proof


@pytest.mark.parametrize("path", [*DOORS, *PLACES])
def test_each_place_of_the_rule_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_doors_are_proofs_on_postgres_alone() -> None:
    door, engine = "tests/gateway/rest/test_lists.py::test_a", "tests/outbox/test_alone.py::test_a"
    assert is_proof(door, on_postgres=True)
    assert not is_proof(door, on_postgres=False)
    assert not is_proof(engine, on_postgres=True)
    assert is_proof("tests/system/test_kills.py::test_a", on_postgres=False)
