"""What `make test` leaves out."""

import pytest

from tests.architecture.tree import ROOT
from tests.support.targets import ALIKE, DOORS, PLACES, is_proof, leaves_out


@pytest.mark.parametrize("place", [*DOORS, *PLACES, *ALIKE])
def test_each_place_of_the_rule_exists(place: str) -> None:
    path, _, name = place.partition("::")
    assert (ROOT / path).exists()
    assert not name or f"def {name}" in (ROOT / path).read_text()


def test_doors_are_proofs_on_postgres_alone() -> None:
    door, engine = "tests/gateway/rest/test_lists.py::test_a", "tests/outbox/test_alone.py::test_a"
    assert is_proof(door, on_postgres=True)
    assert not is_proof(door, on_postgres=False)
    assert not is_proof(engine, on_postgres=True)
    assert is_proof("tests/system/test_kills.py::test_a", on_postgres=False)


def test_only_a_run_without_proofs_leaves_their_files_alone() -> None:
    assert leaves_out("not proof and not slow", "tests/system/test_kills.py")
    assert not leaves_out("proof", "tests/system/test_kills.py")
    assert not leaves_out("", "tests/system/test_kills.py")
    assert not leaves_out("not proof", "tests/system")
    assert not leaves_out("not proof", "tests/gateway/rest/test_lists.py")
