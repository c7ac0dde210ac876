"""Tests which JSON is accepted and which is refused."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.records.values.strictjson import DEPTH, MOST_VALUES, InvalidJson, decode, dumps


@pytest.mark.parametrize(
    "text",
    [
        b"", b" ", b"{", b'{"a":}', b"'a'", b"{a:1}", b"[1,]", b"01", b"+1", b".5", b"nul", b"{}x",
        b'{"a":NaN}', b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b'{"a":[1e999]}',
        b"1e-9999999999999999999", b"0e99999999999999999999",
        b'{"a":1,"a":2}', b'{"a":1,"a":true}', b'{"a":[1],"a":[true]}', b'{"a":1,"b":2,"a":null}',
        b'"\\ud800"', b'"\\udc00\\ud800"', b'{"\\ud800":1}', b'["x","\\udfff"]',
        b'"\\u0000"', b'{"a\\u0000b":1}', b'[[["\\u0000"]]]', b'"a\x00b"', b'"\x1f"',
        b"\xff", b'"\xc3"', b'"\xed\xa0\x80"', b'\xef\xbb\xbf{}', "{}".encode("utf-16"),
        b"9" * 5000, b"[" * 65 + b"]" * 65, b'{"a":' * 65 + b"1" + b"}" * 65,
        b"[" * 4_000 + b"]" * 4_000,
        b"[" * 100_000, b"[" * 500_000 + b"]" * 500_000, b'{"a":' * 100_000,
    ],
    # pytest finds no test by an id with a backslash.
    ids=lambda text: repr(text[:24]).replace("\\", ""),
)  # fmt: skip
def test_refused(text: bytes) -> None:
    with pytest.raises(InvalidJson) as caught:
        decode(text)
    assert str(caught.value).endswith((".", ")")) or ":" in str(caught.value)
    assert len(str(caught.value)) < 200


MEMBERS = st.sampled_from(
    [
        "0", "-0", "-0.0", "1", "-1", "1.10", "1e2", "-1E-7", "0e9", "1e400", "9" * 40, "01",
        "-", "true", "null", "NaN", '""', '"a"', '"\\u0061"', '"\\""', '"\\\\"', '"\\\\\\""',
        '"-0"', '"é"', '"\\u0000"', '"\\ud800"', '"\\uD83d\\ude00"', '"\\n"', '"\\x"',
        '"\x1f"', '"', "[", "{}", "]",
    ]
)  # fmt: skip
TEXTS = st.recursive(
    MEMBERS,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(
            st.tuples(st.sampled_from(['"a"', '"b"', '"\\u0061"', '"é"', "1"]), inner), max_size=4
        ).map(lambda pairs: "{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}")
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(TEXTS)
def test_both_decoders_decide_alike(text: str) -> None:
    def outcome(data: bytes) -> str:
        try:
            return dumps(decode(data))
        except InvalidJson:
            return "refused"

    # The fast decoder leaves long texts to the other one.
    assert outcome(text.encode()) == outcome(text.encode() + b" " * MOST_VALUES)


@pytest.mark.proof
def test_nested_duplicate_keys_take_linear_time() -> None:
    inside = b"[" + b"1," * (MOST_VALUES // 2) + b"1]"
    levels = DEPTH - 4

    def seconds(member: bytes) -> float:
        text = (b'{%s,"a":' % member) * levels + inside + b"}" * levels
        found = []
        for _ in range(3):
            began = process_time()
            decode(text)
            found.append(process_time() - began)
        return min(found)

    # Serialising the rest of the document at every level takes 200 times as long.
    assert seconds(b'"x":1,"x":1') < 30 * seconds(b'"x":1,"y":1')


ZEROS = b"[" + b"0," * (MOST_VALUES - 2) + b"0]"
"""As many values as may be: the list is one of them."""
SEPARATORS = b'"' + rb",[{\",\\" * MOST_VALUES + b'"'
"""A string of what separates values outside of strings."""


@pytest.mark.parametrize(
    "text",
    [
        ZEROS[:-1] + b",0]",
        b"[%s,%s]" % (SEPARATORS, ZEROS),
        b"[" + b"{}," * (MOST_VALUES // 2) + b"{}]",
        b"{" + b'"a":"",' * MOST_VALUES + b'"a":""}',
        b"[" + b'"",' * (3 * MOST_VALUES) + b'""]',
    ],
    ids=["one more", "beside a string", "objects", "members", "strings"],
)
def test_more_values_are_refused(text: bytes) -> None:
    with pytest.raises(InvalidJson, match=r"more than 10000 values; send fewer\.$"):
        decode(text)
