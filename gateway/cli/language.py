"""Chooses the language of what commands say to people, as the locale of the environment asks.

What programs read, JSON and the log, is the same in every language.
"""

import os
import re
from collections.abc import Mapping

from gateway import texts
from gateway.texts import CODES, Texts

VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""The first one that is set counts."""


def code(environment: Mapping[str, str] = os.environ) -> str:
    """Return the language of CODES that a locale such as `pt_BR.UTF-8` means, else English."""
    locale = next(filter(None, (environment.get(name) for name in VARIABLES)), "")
    return texts.known(re.split("[_.-]", locale.lower())[0]) or CODES[0]


def spoken() -> Texts:
    """Return the texts of that language."""
    return texts.of(code())


def of_declaration(key: str, english: str) -> str:
    """Return a text that the declaration has in English; no catalogue is read for English."""
    return english if code() == CODES[0] else spoken().get(key, english)
