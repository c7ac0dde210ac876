"""The steps of an attempt are told in Portuguese too."""

from __future__ import annotations

import re

from gateway import texts
from gateway.console.frame.told_steps import PATTERNS, told
from outbox.sending.addresses import Rules
from outbox.sending.outcome import Outcome
from outbox.sending.steps import REFUSALS, steps_of
from outbox.states import OutcomeName

EN, PT = texts.of("en"), texts.of("pt-BR")


def test_every_pattern_has_a_text_with_its_values() -> None:
    keys = {f"told.{name}" for name, _ in PATTERNS}
    assert {key for key in texts.own_keys("pt-BR") if key.startswith("told.")} == keys
    for name, pattern in PATTERNS:
        values = set(re.findall(r"\?P<(\w+)>", pattern))
        assert values == set(re.findall(r"\{(\w+)\}", PT.forms[f"told.{name}"][0])), name


def test_the_steps_to_a_response_are_all_told() -> None:
    names: dict[int, OutcomeName] = {2: "success", 3: "http_3xx", 4: "http_4xx", 5: "http_5xx"}
    for status in (200, 301, 302, 418, 429, 500, 503, *REFUSALS):
        outcome = Outcome(
            "throttled" if status in (429, 503) else names[status // 100], status, None, None,
            "192.0.2.1:443", 1, 1, 1, 1, 4, [], b"", False, False,
        )  # fmt: skip
        outcome.response_headers = [("Location", "/x")] if status == 301 else []
        steps = steps_of("https://shop.example/hook", outcome, Rules(), 15)
        assert [step.name for step in steps] == ["url", "dns", "egress", "connect", "tls", "answer"]
        outcome.dns_us = None
        steps += steps_of("https://shop.example/hook", outcome, Rules(proxies_resolve=True), 15)
        for step in steps:
            assert told(EN, step.text) == step.text
            assert told(PT, step.text) != step.text, step.text
