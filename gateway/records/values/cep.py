"""Defines the format of a CEP, the Brazilian postal code."""

import re
from typing import Any

from gateway.records.values.format import Format, Wrong
from gateway.records.values.formats import string

PATTERN = r"^[0-9]{5}-?[0-9]{3}$"
_CEP = re.compile(r"[0-9]{5}-?[0-9]{3}", re.ASCII)


def cep() -> Format:
    """Return the format of a CEP with or without hyphen, stored as eight digits."""

    def check(value: Any) -> str:
        sent = string(value, 9)
        if _CEP.fullmatch(sent) is None:
            raise Wrong("invalid_cep", "Send a CEP of eight digits such as 01310-100.")
        return sent.replace("-", "")

    return Format(check, {"type": "string", "maxLength": 9, "pattern": PATTERN})
