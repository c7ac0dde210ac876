"""Defines the members of a postal address in Brazil."""

from typing import Any

from gateway.records.values import cep, formats
from gateway.records.values.formats import Format, Wrong
from gateway.records.values.nested import Member

STATES = (
    "AC", "AL", "AM", "AP", "BA", "CE", "DF", "ES", "GO", "MA", "MG", "MS", "MT", "PA", "PB", "PE",
    "PI", "PR", "RJ", "RN", "RO", "RR", "RS", "SC", "SE", "SP", "TO",
)  # fmt: skip


def state() -> Format:
    """Return the format of the two-letter code of a state, stored in capitals."""

    def check(value: Any) -> str:
        code = formats.string(value, 2).upper()
        if code not in STATES:
            raise Wrong("invalid_state", "Send the two-letter code of a state, such as SP.")
        return code

    return Format(check, {"type": "string", "minLength": 2, "maxLength": 2})


ADDRESS = (
    Member("name", formats.title(), "Name of the recipient."),
    Member("street", formats.title(), "Street.", required=True),
    Member("number", formats.title(20), "Number.", required=True),
    Member("complement", formats.text(200), "Complement."),
    Member("district", formats.text(200), "District."),
    Member("city", formats.title(), "City.", required=True),
    Member("state", state(), "Two-letter code of the state.", required=True),
    Member("cep", cep.cep(), "CEP, eight digits.", required=True),
)
EXAMPLE = {
    "name": "Maria da Silva", "street": "Avenida Paulista", "number": "1578",
    "district": "Bela Vista", "city": "São Paulo", "state": "SP", "cep": "01310200",
}  # fmt: skip
