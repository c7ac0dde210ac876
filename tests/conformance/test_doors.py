"""Tests the typed values that doors beside REST hand to records.

The resource here exists only for these tests.
"""

from typing import Any

import pytest

from gateway.records.draft import check
from gateway.records.resource import DerivedColumn, Field, Resource
from gateway.records.values import dates, formats, instants, nested, numbers
from gateway.records.values.nested import Member

PART = (
    Member("name", formats.title(), "Name.", required=True),
    Member("price", numbers.money(), "Price.", required=True),
    Member("quantity", numbers.quantity(), "How much."),
)
OFFERS = Resource(
    noun="offer", plural="offers", table="offers", description="An offer.",
    fields=(
        Field("title", "title", formats.title(), "Title.", "Tea", required=True),
        Field("price", "price", numbers.money(), "Price.", 1.5, required=True),
        Field("endsAt", "ends_at", instants.instant(), "End.", "2026-12-01",
              beside=(DerivedColumn("ends_day", dates.is_bare, part=True),)),
        Field("parts", "parts", nested.objects(PART, 5), "Parts.", [], default="[]"),
    ),
    events={},
)  # fmt: skip


@pytest.mark.parametrize(
    ("values", "faults"),
    [
        ({"price": -1}, [("price", "out_of_range")]),
        ({"price": numbers.MOST_CENTAVOS + 1}, [("price", "out_of_range")]),
        # An amount is whole centavos.
        *(({"price": price}, [("price", "wrong_type")]) for price in (1.5, True, "1")),
        ({"endsAt": 2**62}, [("endsAt", "invalid_date")]),
        ({"endsAt": dates.Day(-(2**62))}, [("endsAt", "invalid_date")]),
        ({"endsAt": True}, [("endsAt", "wrong_type")]),
        ({"title": " "}, [("title", "blank")]),
        (
            {"parts": [{"name": "x", "price": -5}, {"price": 1, "quantity": 0}]},
            [("parts[0].price", "out_of_range"), ("parts[1].name", "required"),
             ("parts[1].quantity", "out_of_range")],
        ),
    ],
)  # fmt: skip
def test_typed_values_are_checked(values: dict[str, Any], faults: list[tuple[str, str]]) -> None:
    draft = check(OFFERS, {"title": "Tea", "price": 150} | values, creating=True)
    assert [(fault.field, fault.code) for fault in draft.faults] == faults
