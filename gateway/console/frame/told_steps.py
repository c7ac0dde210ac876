"""Tells steps, failures and notes of an attempt in the reader's language.

The engine says them in English.

A sentence that no pattern knows, such as what an operating system reports, stays as it is.
"""

import re

from gateway.texts import Texts
from outbox.sending.oddities import NOT_HTTP, NOTES, REFUSALS, TOO_MUCH
from outbox.sending.outcome import CLOSED_EARLY, CUT_OFF

ANSWERED = r"the token endpoint answered (?P<status>\d+)"
PATTERNS = (
    ("url", r"(?P<scheme>https?) to (?P<host>\S+), port (?P<port>\d+)\."),
    ("has_address", r"(?P<host>\S+) has an address\."),
    ("literal", r"The URL has an IP address, so there is no name to look up\."),
    ("proxy_resolves", r"The proxy looks the name up\."),
    ("proxy_decides", r"The proxy decides which addresses it reaches\."),
    ("allowed", r"Deliveries to this address are allowed\."),
    ("not_allowed", r"Deliveries to this address are not allowed.*"),
    ("connected", r"Connected to (?P<address>\S+)\."),
    ("certificate", r"The certificate is valid for (?P<host>\S+)\."),
    ("plain", r"The URL is plain http: the request is not encrypted\."),
    ("late", r"No response within (?P<seconds>[\d.]+) s\. Respond first, and work afterwards\."),
    ("answered", r"The receiver answered (?P<status>\d+) to the signed request\."),
    (
        "answered_slowly",
        r"The receiver answered (?P<status>\d+) to the signed request\. It took (?P<took>[\d.]+) s "
        r"of the (?P<most>[\d.]+) s allowed; respond first\.",
    ),
    ("limited", r"The receiver answered (?P<status>\d+): it limits requests\."),
    ("unavailable", r"The receiver answered (?P<status>\d+): it is unavailable or overloaded\."),
    (
        "redirect_to",
        r"The receiver answered (?P<status>\d+), a redirect to (?P<place>\S+)\. Redirects .*",
    ),
    ("redirect", r"The receiver answered (?P<status>\d+), a redirect\. .*"),
    ("broken", r"The receiver answered (?P<status>\d+): it failed\. .*"),
    ("unsigned", r"The receiver answered (?P<status>\d+): it refused the signature or wants .*"),
    ("nothing_there", r"The receiver answered (?P<status>\d+): there is nothing at this path\."),
    ("no_post", r"The receiver answered (?P<status>\d+): it does not accept POST .*"),
    ("gone", r"The receiver answered (?P<status>\d+): it asked to stop receiving events\. .*"),
    ("too_large", r"The receiver answered (?P<status>\d+): the body is too large for it\."),
    ("no_json", r"The receiver answered (?P<status>\d+): it does not accept JSON\."),
    ("refused", r"The receiver answered (?P<status>\d+): it refused the request\."),
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
    ("token_given", rf"{ANSWERED} with a token, which lasts (?P<seconds>[\d.e+]+) s\."),
    ("token_untimed", rf"{ANSWERED} with a token, which does not say how long it lasts\."),
    ("token_answered", rf"{ANSWERED}(?P<said>.*?)\.?"),
    ("token_type", r"the token endpoint gave a token of the type (?P<kind>.+), not Bearer\.?"),
    ("token_unusable", r"the token endpoint gave a token that no header can have\.?"),
    *((f"note_{name}", re.escape(note)) for name, note in NOTES.items()),
)
# The log has the same texts, but not as sentences.
_KNOWN = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in PATTERNS)


def told(texts: Texts, sentence: str) -> str:
    """Return a sentence of the engine in the language of these texts, if they have it."""
    for name, pattern in _KNOWN:
        found = pattern.fullmatch(sentence)
        if found is not None and f"told.{name}" in texts:
            return texts(f"told.{name}", **found.groupdict())
    return sentence
