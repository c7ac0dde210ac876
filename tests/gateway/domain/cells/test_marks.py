"""The ends of credentials that name a cell."""

import pytest

from gateway.domain.accounts import api_keys, tokens
from gateway.domain.cells.marks import Mark, bare, mark_of, marked
from outbox.ids import Ids

OWNER = "019a6e1d4b7f5c2d9e3a1b0f"


def test_a_single_installation_marks_nothing() -> None:
    assert marked("crt_x", "", OWNER) == "crt_x"


@pytest.mark.parametrize("make", [api_keys.make, tokens.make])
def test_a_credential_names_its_cell_and_owner(make: object) -> None:
    assert callable(make)
    plain = make(Ids())
    text = marked(plain, "two", OWNER)
    assert text == f"{plain}.two.{OWNER}"
    assert mark_of(text) == Mark("two", OWNER)
    assert bare(text) == plain
    assert mark_of(plain) is None


def test_a_marked_key_is_well_formed() -> None:
    key = api_keys.make(Ids())
    assert api_keys.well_formed(marked(key, "two", OWNER))
    assert not api_keys.well_formed(f"{key}.two")
    assert not api_keys.well_formed(f"{key}.Two.{OWNER}")
    assert not api_keys.well_formed(key[:-1] + "." + f"two.{OWNER}")


@pytest.mark.parametrize(
    "text",
    [
        f"crt_x..{OWNER}", f"crt_x.two.{OWNER[:-1]}", f"crt_x.2.{OWNER}", f".two.{OWNER}",
        f"crt_x.two.{OWNER}.", "x" * 300 + f".two.{OWNER}", f"crt_x.{'a' * 17}.{OWNER}",
    ],
)  # fmt: skip
def test_other_text_has_no_mark(text: str) -> None:
    assert mark_of(text) is None
