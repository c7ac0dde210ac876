"""Connections: what their arguments select, and their cursors."""

import base64
import json
from typing import Any

import pytest

from gateway.graphql.connections import NEWEST, cursor, slice_request
from gateway.records.errors import Refusal
from gateway.records.places import Place
from gateway.records.slices import SliceRequest

ID = "018f3a5b7c9d1e2f3a4b5c6d"


def forged(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


def test_stretches() -> None:
    place = Place(1_700_000_000_000_000, ID)
    text = cursor(place)
    assert "=" not in text
    assert slice_request({}) == SliceRequest(20)
    assert slice_request({"first": None, "last": None}) == SliceRequest(20)
    assert slice_request({"first": 5, "after": text}) == SliceRequest(5, after=place)
    assert slice_request({"first": 20, "last": 3, "before": text}) == SliceRequest(
        3, True, before=place
    )
    assert slice_request({"first": 0, "after": text, "before": text}) == SliceRequest(
        0, False, place, place
    )
    assert slice_request({"first": 100}).limit == 100
    named = Place("cafe", ID)
    assert slice_request({"after": cursor(named, "t")}, "t", text=True).after == named


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({"first": -1}, "first"),
        ({"first": 101}, "first"),
        ({"last": 101}, "last"),
        ({"last": -1}, "last"),
        ({"after": ""}, "after"),
        ({"after": "x"}, "after"),
        ({"after": "é"}, "after"),
        ({"after": "A" * 5_000}, "after"),
        ({"before": forged()}, "before"),
        ({"before": forged("p", 1, ID)}, "before"),
        ({"after": forged(NEWEST, "1", ID)}, "after"),
        ({"after": forged(NEWEST, True, ID)}, "after"),
        ({"after": forged(NEWEST, 1.5, ID)}, "after"),
        ({"after": forged(NEWEST, 2**63, ID)}, "after"),
        ({"after": forged(NEWEST, 1, "x")}, "after"),
        ({"after": forged(NEWEST, 1, ID, 2)}, "after"),
        ({"after": forged(NEWEST, 1, 2)}, "after"),
        ({"after": base64.urlsafe_b64encode(b"[" * 1_500).decode()}, "after"),
        ({"before": base64.urlsafe_b64encode(b'{"a":' * 300).decode()}, "before"),
        ({"after": base64.urlsafe_b64encode(b'["n",1,"\xff"]').decode()}, "after"),
    ],
)
def test_what_selects_nothing_is_refused(args: dict[str, Any], field: str) -> None:
    with pytest.raises(Refusal) as refused:
        slice_request(args)
    assert refused.value.code == "validation_error"
    assert refused.value.faults[0].field == field
