"""The codes of two-factor authentication: those of RFC 6238, their drift, and typed forms."""

import pytest

from gateway.domain.accounts import codes
from outbox.durations import SECOND
from outbox.ids import Ids

SECRET = b"12345678901234567890"
"""That of the test vectors of RFC 6238, appendix B, of which apps show the last six digits."""


@pytest.mark.parametrize(
    ("seconds", "code"),
    [(59, "287082"), (1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")],
)
def test_a_code_is_valid_one_step_early_or_late_and_once(seconds: int, code: str) -> None:
    step = seconds // 30
    for drift, right in ((-2, False), (-1, True), (0, True), (1, True), (2, False)):
        found = codes.step_of(SECRET, code, (seconds + 30 * drift) * SECOND, 0)
        assert found == (step if right else None), drift
    assert codes.step_of(SECRET, code, seconds * SECOND, step) is None
    assert codes.step_of(SECRET, code, seconds * SECOND, step - 1) == step


@pytest.mark.parametrize(
    ("typed", "plain"),
    [
        ("287 082", "287082"),
        (" 287-082\u200b", "287082"),
        ("２８７０８２", "287082"),
        ("٢٨٧٠٨٢", "٢٨٧٠٨٢"),
        ("", ""),
        ("\ud800287082", "287082"),
    ],
)
def test_spaces_and_widths_of_a_code_do_not_matter(typed: str, plain: str) -> None:
    assert codes.plain(typed) == plain
    assert codes.is_of_app(plain) is (plain == "287082")


def test_recovery_codes_are_many_long_and_read_as_they_are_typed() -> None:
    made = codes.new_recovery_codes(Ids())
    assert len(set(made)) == codes.RECOVERY_CODES
    assert all(len(code) == 19 and not set(code) & set("iloOu") for code in made)
    digest = codes.digest_of("ana", "01ab-cdef-0000-1111")
    assert digest == codes.digest_of("ana", " OIAB cdef-ooooLl1i ")
    assert digest != codes.digest_of("rui", "01ab-cdef-0000-1111")
