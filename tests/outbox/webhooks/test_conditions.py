"""Conditions on the fields of events and of their records: when they hold, how they are stored."""

from typing import Any

import pytest

from outbox.events import message
from outbox.webhooks import conditions
from outbox.webhooks.conditions import Condition, Unreadable, facts_of, hold

WON = Condition("status", "won")
DATA = {
    "status": "won", "value": 12.5, "count": 3, "large": 2**53, "open": False, "note": None,
    "empty": "", "tags": ["a"], "name": "São Paulo “x”",
}  # fmt: skip


def body(**data: Any) -> Any:
    return facts_of(message("deal.created", 0, data))


@pytest.mark.parametrize(
    ("field", "value", "holds"),
    [
        ("status", "won", True), ("status", "Won", False), ("status", "wo", False),
        ("value", "12.5", True), ("value", "12.50", True), ("value", "12.51", False),
        ("value", "twelve", False), ("count", "3", True), ("count", "3.0", True),
        ("large", "9007199254740992", True), ("open", "false", True), ("open", "0", False),
        ("note", "null", False), ("note", "", False), ("note", None, False),
        ("empty", "", True), ("empty", None, True), ("tags", "a", False), ("tags", None, True),
        ("missing", "", False), ("missing", None, False), ("status", None, True),
        ("open", None, True), ("name", "São Paulo “x”", True),
    ],
)  # fmt: skip
def test_a_condition_holds_for_this_value(field: str, value: str | None, holds: bool) -> None:
    assert hold([Condition(field, value)], body(**DATA)) is holds


@pytest.mark.parametrize("damaged", ["", "{", "[1]", '[["status"]]'])
def test_damaged_fields_of_the_record_leave_nothing_out(damaged: str) -> None:
    assert hold([WON], facts_of(message("deal.updated", 0, {}), damaged))


@pytest.mark.parametrize(
    "damaged",
    [
        b"", b"[]", b'{"data":3}', b'{"data":{"status":', b'{"data":{"status":"w\xefn"}}',
        b'{"data":{"stat\xf5s":"won"}}', b'{"data":{"status":1e400}}',
        b'{"data":{"more":' + b"[" * 10_000,
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_not_left_out(damaged: bytes) -> None:
    assert hold([WON], facts_of(damaged))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "3",
        '{"a":1}',
        '[["a"]]',
        '[["a",1]]',
        "[1]",
        '[["a","b","changed"]]',
        '[["a",null,"x"]]',
        "[[]]",
    ],
)
def test_damaged_conditions_are_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        conditions.parse(text)
