"""Edges of small functions over values, a row each."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from gateway.domain.imports.files import separator_of
from gateway.records.values import cnpj, dates, formats, written_dates
from gateway.records.values.formats import Format, Wrong
from gateway.records.values.pix_key import pix_key
from gateway.rest.params import expected_of
from outbox.queue.state.policy import Retry, Schedule
from outbox.sending.ed25519 import from_base64url

HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("function", "given", "result"),
    [
        (dates.parse, "1970-01-01T23:59:59+23:59", 59_000_000),
        (dates.parse, "1970-01-01T00:00:60Z", 60_000_000),
        (dates.parse, "1970-01-01T23:00:00Z", 23 * HOUR),
        (dates.parse, "1970-01-01T24:00:00Z", None),
        (dates.parse, "1970-01-01T00:00:61Z", None),
        (dates.parse, "1970-01-01T00:00:00+24:00", None),
        (dates.parse, "1970-01-01T00:00:00+00:60", None),
        (written_dates.shows, "13.12.2026", written_dates.NO_FORM),
        (written_dates.shows, "13/12/2026", written_dates.SHOWS_DAY),
        (written_dates.shows, "12/13/2026", written_dates.SHOWS_MONTH),
        (written_dates.shows, "13/13/2026", written_dates.NO_FORM),
        (expected_of, None, None),
        (expected_of, '"a", "b"', frozenset("ab")),
        (expected_of, '"a, b", W/"c", "', frozenset()),
        (expected_of, '"*"', frozenset()),
        (expected_of, '"a", *', frozenset("*")),
        (from_base64url, "", b""),
        (from_base64url, "_-8", b"\xff\xef"),
        (from_base64url, "YWJj", b"abc"),
        # A heading without separators, and more or fewer lines than half that have one.
        (lambda text: separator_of(text, last=True), "a\nb,c\nd,e\nf,g\n", ","),
        (lambda text: separator_of(text, last=True), "a\nb,c\nd,e\nf\n", "\t"),
    ],
)
def test_a_result(function: Callable[[Any], object], given: Any, result: object) -> None:
    assert function(given) == result


@pytest.mark.parametrize("text", ["a+bc", "ab/c", "YQ==", "é", "YWJjZ"])
def test_what_is_not_base64url(text: str) -> None:
    with pytest.raises(ValueError):
        from_base64url(text)


@pytest.mark.parametrize(
    ("kind", "most", "code"),
    [
        (formats.url(), "https://a.example/" + "a" * 2030, "too_long"),
        (formats.slug(), "a" * 200, "too_long"),
        (formats.phone(), "1" * 40, "too_long"),
    ],
)
def test_the_longest_text_of_a_format(kind: Format, most: str, code: str) -> None:
    assert kind.check(most) == most
    with pytest.raises(Wrong) as caught:
        kind.check(most + "1")
    assert caught.value.code == code


def test_a_masked_cnpj_is_stored_unchanged_and_a_pix_key_is_not() -> None:
    masked = "11.222.333/0001-81"
    assert cnpj.cnpj().check(masked) == masked
    assert pix_key().check(masked) == cnpj.normal(masked) == re.sub(r"\D", "", masked)


def test_the_times_of_retries_before_any_attempt() -> None:
    assert Schedule((10.0, 20.0)).preview() == [
        Retry(2, 10.0, 8.0, 12.0), Retry(3, 30.0, 24.0, 36.0),
    ]  # fmt: skip
