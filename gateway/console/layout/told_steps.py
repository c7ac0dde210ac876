"""Tells steps, failures and notes of an attempt in the reader's language.

A step has a code. Failures and notes are texts of the delivery log, which are English; one that no
pattern knows, such as what an operating system reports, stays as it is.
"""

import re

from gateway.texts import Texts
from outbox.sending.explained import Step
from outbox.sending.oddities import NOT_HTTP, NOTES, REFUSALS, TOO_MUCH
from outbox.sending.outcome import CLOSED_EARLY, CUT_OFF
from outbox.sending.urls import REFUSED_ADDRESS

ANSWERED = r"the token endpoint answered (?P<status>\d+)"
PATTERNS = (
    ("not_allowed", rf"{re.escape(REFUSED_ADDRESS)}.*"),
    *((f"not_http_{name}", rf"{NOT_HTTP}: {re.escape(why)}\.?") for name, why in REFUSALS.items()),
    ("starts_with", rf"{NOT_HTTP}: it starts with (the bytes )?(?P<start>.+?)\.?"),
    ("no_status", rf"{NOT_HTTP}: no status in (?P<start>.+?)\.?"),
    ("odd_status", rf"{NOT_HTTP}: the status (?P<status>\d+) is not in 100 to 599\.?"),
    ("switched", r"the receiver switched protocols\.?"),
    ("too_much", rf"{TOO_MUCH}\.?"),
    (
        "interim",
        r"only an interim response \((?P<status>\d+)\) came before the connection closed\.?",
    ),
    ("closed_early", rf"{CLOSED_EARLY}\.?"),
    ("cut_off", rf"{CUT_OFF}\.?"),
    ("token_failed", r"the token endpoint failed: (?P<why>.+?)\.?"),
    ("token_redirect", rf"{ANSWERED}, a redirect, which is not followed\.?"),
    ("token_cut", rf"{ANSWERED} with an answer that is cut off(?P<said>.*?)\.?"),
    ("token_no_json", rf"{ANSWERED} with no JSON object(?P<said>.*?)\.?"),
    ("token_missing", rf"{ANSWERED} without an access token(?P<said>.*?)\.?"),
    ("token_answered", rf"{ANSWERED}(?P<said>.*?)\.?"),
    ("token_type", r"the token endpoint gave a token of the type (?P<kind>.+), not Bearer\.?"),
    ("token_unusable", r"the token endpoint gave a token that no header can have\.?"),
    *((f"note_{name}", re.escape(note)) for name, note in NOTES.items()),
)
ALONE = ("failed", "failed_plain")
"""The codes whose sentence begins with the error."""
# Refusals of a URL are sentences, the texts of the log are not.
_KNOWN = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in PATTERNS)


def step_text(texts: Texts, step: Step) -> str:
    """Return the sentence of a step in the language of these texts."""
    values = dict(step.values)
    if "error" in values:
        said = told(texts, values["error"])
        values["error"] = _sentence(said) if step.code in ALONE else said.removesuffix(".")
    return texts(f"told.{step.code}", **values)


def told(texts: Texts, sentence: str) -> str:
    """Return a sentence of the engine in the language of these texts, if they have it."""
    for name, pattern in _KNOWN:
        match = pattern.fullmatch(sentence)
        if match is not None and f"told.{name}" in texts:
            return texts(f"told.{name}", **match.groupdict())
    return sentence


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
