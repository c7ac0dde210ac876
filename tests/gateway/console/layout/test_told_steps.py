"""The steps of an attempt, and what the log says of it, are told in each language."""

from __future__ import annotations

import re
from string import Formatter

from gateway import texts
from gateway.console.layout.told_steps import PATTERNS, step_text, told
from outbox.sending.addresses import Rules
from outbox.sending.explained import CODES, REFUSALS, steps_of
from outbox.sending.outcome import Outcome
from outbox.states import OutcomeName

EN, PT = texts.of("en"), texts.of("pt-BR")


def values_of(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_every_code_and_every_pattern_has_a_text_with_its_values() -> None:
    keys = {f"told.{name}" for name, _ in PATTERNS}
    own = {key for key in texts.own_keys("pt-BR") if key.startswith("told.")}
    assert own == keys | {f"told.{code}" for code in CODES}
    assert {key for key in EN if key.startswith("told.")} == {f"told.{code}" for code in CODES}
    for name, pattern in PATTERNS:
        values = set(re.findall(r"\?P<(\w+)>", pattern))
        assert values == values_of(PT.forms[f"told.{name}"][0]), name


def test_the_steps_to_a_response_are_all_told() -> None:
    names: dict[int, OutcomeName] = {2: "success", 3: "http_3xx", 4: "http_4xx", 5: "http_5xx"}
    for status in (200, 301, 302, 418, 429, 500, 503, *REFUSALS):
        outcome = Outcome(
            outcome="throttled" if status in (429, 503) else names[status // 100], status=status,
            address="192.0.2.1:443", dns_us=1, connect_us=1, tls_us=1, first_byte_us=1, total_us=4,
        )  # fmt: skip
        outcome.response_headers = [("Location", "/x")] if status == 301 else []
        steps = steps_of("https://shop.example/hook", outcome, Rules(), 15)
        assert [step.name for step in steps] == ["url", "dns", "egress", "connect", "tls", "answer"]
        outcome.dns_us = None
        steps += steps_of("https://shop.example/hook", outcome, Rules(proxies_resolve=True), 15)
        for step in steps:
            english, portuguese = step_text(EN, step), step_text(PT, step)
            assert english.endswith(".")
            assert portuguese != english, english
            assert all(value in english for value in step.values.values()), english


def test_a_failure_is_told_as_a_sentence() -> None:
    outcome = Outcome(
        outcome="connect_error", error="the receiver closed the connection without a response",
        address="192.0.2.1:443", dns_us=1, connect_us=1, tls_us=1, total_us=4,
    )  # fmt: skip
    [*_, last] = steps_of("https://shop.example/hook", outcome, Rules(), 15)
    assert step_text(EN, last) == "The receiver closed the connection without a response."
    assert step_text(PT, last) == "O receptor fechou a conexão sem responder."
    assert told(PT, "something else") == "something else"
