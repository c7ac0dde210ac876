"""The ends of credentials that name a cell."""

from gateway.domain.accounts import api_keys
from gateway.domain.cells.credential_suffix import mark_of, marked
from outbox.ids import Ids

OWNER = "019a6e1d4b7f5c2d9e3a1b0f"


def test_other_text_has_no_mark() -> None:
    for text in (
        f"crt_x..{OWNER}", f"crt_x.two.{OWNER[:-1]}", f"crt_x.2.{OWNER}", f".two.{OWNER}",
        f"crt_x.two.{OWNER}.", "x" * 300 + f".two.{OWNER}", f"crt_x.{'a' * 17}.{OWNER}",
    ):  # fmt: skip
        assert mark_of(text) is None, text
    key = api_keys.make(Ids())
    assert api_keys.well_formed(marked(key, "two", OWNER))
    for wrong in (f"{key}.two", f"{key}.Two.{OWNER}", f"{key[:-1]}.two.{OWNER}"):
        assert not api_keys.well_formed(wrong)
