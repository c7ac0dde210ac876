"""Bodies equal JavaScript's output: node serialises its own parse of them."""

import json
import math
import random
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.events import SAFE_INTEGER, encode
from tests.support.node import run_node

TOUCHY_NUMBERS = [
    0, -0.0, 0.0, 1, -1, 1.0, 0.1, 1.5, -2.75, 100.0, 1e5, 1e15, 1e16, 123456789012345680.0,
    1e20, 1e21, 1.5e21, 1e22, 1e100, 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308,
    1e-5, 1e-6, 1.5e-6, 9.999e-7, 1e-7, 1.23e-7, 1e-10, 0.000001234, 2**53, -(2**53), 2**53 - 1,
    4.35, 0.30000000000000004, 1 / 3, 123456.789, 1e300,
]  # fmt: skip
TOUCHY_TEXTS = [
    "", "Açaí", "日本", "😀", '"', "\\", "/", "\b\f\n\r\t", "\x00\x01\x1f", "\x7f", "\u2028\u2029",
    "<script>", "\ufeff", "e\u0301", "\ud7ff\ue000",
]  # fmt: skip
texts = st.text(st.characters(codec="utf-8"), max_size=20)
numbers = st.one_of(
    st.integers(-SAFE_INTEGER, SAFE_INTEGER), st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        # JavaScript moves keys that look like array indexes to the front; no field has such a name.
        st.dictionaries(texts.map(lambda text: f"k{text}"), inner, max_size=4),
    ),
    max_leaves=12,
)
SCRIPT = """
    const bodies = JSON.parse(await new Promise((done) => {
      let text = ""; process.stdin.setEncoding("utf8");
      process.stdin.on("data", (part) => text += part).on("end", () => done(text));
    }));
    console.log(JSON.stringify(bodies.map((body) => JSON.stringify(JSON.parse(body)))));
"""


def as_javascript(digits: str) -> float:
    return int(digits) if abs(int(digits)) <= SAFE_INTEGER else float(digits)


def rewritten(bodies: list[str]) -> list[str]:
    written: list[str] = json.loads(run_node(SCRIPT, stdin=json.dumps(bodies)).stdout)
    return written


def test_node_writes_the_same_bytes_for_edge_cases() -> None:
    dice = random.Random(1)
    drawn = [struct.unpack("d", dice.randbytes(8))[0] for _ in range(20_000)]
    values = [*TOUCHY_NUMBERS, *TOUCHY_TEXTS, *filter(math.isfinite, drawn)]
    bodies = [encode({"data": value}).decode() for value in values]
    assert rewritten(bodies) == bodies


@pytest.mark.slow
@given(values)
def test_a_body_parses_back_to_its_value(value: Any) -> None:
    assert json.loads(encode(value), parse_int=as_javascript) == value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, SAFE_INTEGER + 1, object(), b"x"])
def test_values_beyond_javascript_are_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        encode({"data": value})
