"""How a person is found in text, and how long the search takes."""

import pytest

from gateway.domain.contacts.person_erasures import Person
from gateway.domain.privacy.traces import Traces

MANY = Person(
    contacts=(),
    left=(),
    names=tuple(f"Maria {number} Lima" for number in range(50)),
    emails=("maria@example.com",),
    aliases=tuple(f"maria{number}@example.com" for number in range(49)),
    phones=tuple(f"+55 11 98888-77{number:02}" for number in range(50)),
)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("Ask Maria 7 Lima, then maria 8 lima!", "Ask *** *** ***, then *** *** ***!"),
        ("MARIA3@Example.com, xmaria@example.com", "***, x***"),
        ("+55 (11) 98888-7701 or 11988887702", "*** or ***"),
        ("119888877010 and Mariana", "119888877010 and Mariana"),
        ("Nobody", "Nobody"),
    ],
)
def test_all_traces_of_a_person_are_found(text: str, bare: str) -> None:
    assert Traces(MANY).redact(text, close=False) == bare
