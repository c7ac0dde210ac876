"""The formats of values on a page: the steps of an attempt, the word for a delivery."""

from typing import Any

import pytest

from gateway import texts
from gateway.console.frame import display
from gateway.console.frame.display import stages
from outbox.queue.log.delivery_types import Attempt


def attempt(**known: Any) -> Attempt:
    values: dict[str, Any] = {
        "number": 1, "kind": "event", "outcome": "success", "status": 200, "error": None,
        "started_at": 0, "dns_us": None, "connect_us": None, "tls_us": None,
        "first_byte_us": None, "total_us": 1, "address": "127.0.0.1:80", "url": "http://x/",
        "request_headers": [], "response_headers": [], "response_body": b"", "truncated": False,
    }  # fmt: skip
    return Attempt(**values | known)


@pytest.mark.parametrize(
    ("known", "shown"),
    [
        # The time to the first byte starts when the request is sent, not with the attempt.
        ({"dns_us": 10_000, "connect_us": 20_000, "tls_us": 30_000, "first_byte_us": 25_000,
          "total_us": 100_000},
         [("dns", 10_000), ("connect", 20_000), ("tls", 30_000), ("wait", 25_000),
          ("read", 15_000)]),
        ({"first_byte_us": 700, "total_us": 1_000}, [("wait", 700), ("read", 300)]),
        ({"connect_us": 400, "total_us": 15_000, "outcome": "timeout"},
         [("connect", 400), ("wait", 14_600)]),
        ({"total_us": 1_000, "outcome": "connect_error"}, [("wait", 1_000)]),
        # No connection.
        ({"dns_us": 100, "connect_us": 850, "total_us": 1_000, "outcome": "connect_error",
          "address": None}, [("dns", 100), ("connect", 900)]),
        ({"dns_us": 100, "total_us": 1_000, "outcome": "connect_error", "address": None},
         [("dns", 100), ("connect", 900)]),
        ({"connect_us": 100, "total_us": 1_000, "outcome": "tls_error", "address": None},
         [("connect", 100), ("tls", 900)]),
        ({"total_us": 1_000, "outcome": "dns_error", "address": None}, [("dns", 1_000)]),
        # Rounding may make the sum of the steps a little longer than the total.
        ({"connect_us": 600, "first_byte_us": 401, "total_us": 1_000},
         [("connect", 600), ("wait", 401)]),
    ],
)  # fmt: skip
def test_the_steps_of_an_attempt_add_up_to_its_total_time(
    known: dict[str, Any], shown: list[tuple[str, int]]
) -> None:
    found = stages(attempt(**known))
    assert [(stage.name, stage.micros) for stage in found] == shown
    edge = 0
    for stage in found:
        assert stage.start == edge
        edge += stage.width
    assert edge == 1000


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "R$ 0,00"), (12.9, "R$ 12,90"), (1234.5, "R$ 1.234,50"),
        (1_234_567.89, "R$ 1.234.567,89"), (-12.9, "-R$ 12,90"), (0.1 + 0.2, "R$ 0,30"),
    ],
)  # fmt: skip
def test_amounts_are_written_as_in_brazil(amount: float, text: str) -> None:
    assert texts.of("pt-BR").money(amount).replace("\xa0", " ") == text


@pytest.mark.parametrize(
    ("code", "noun", "state", "word"),
    [
        ("pt-BR", "order", "paid", "Pago"), ("pt-BR", "invoice", "paid", "Paga"),
        ("pt-BR", "", "paid", "Pago"), ("pt-BR", "review", "rejected", "Recusada"),
        ("pt-BR", "quote", "rejected", "Recusado"), ("en", "invoice", "paid", "Paid"),
        ("en", "supplier", "of_no_text", "of_no_text"),
    ],
)  # fmt: skip
def test_the_word_for_a_state_agrees_with_its_record(
    code: str, noun: str, state: str, word: str
) -> None:
    assert display.word_of(texts.of(code), state, noun) == word
