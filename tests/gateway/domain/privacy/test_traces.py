"""How a person is found in text, and how long the search takes."""

from time import process_time

import pytest

from gateway.domain.contacts.person_erasures import Person
from gateway.domain.privacy.traces import Traces
from gateway.records.values.formats import LONG

MANY = Person(
    contacts=(),
    left=(),
    names=tuple(f"Maria {number} Lima" for number in range(50)),
    emails=("maria@example.com",),
    aliases=tuple(f"maria{number}@example.com" for number in range(49)),
    phones=tuple(f"+55 11 98888-77{number:02}" for number in range(50)),
)
ONE = Person(contacts=(), left=(), names=("Maria 7 Lima",), emails=("maria@example.com",))


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


@pytest.mark.proof
@pytest.mark.parametrize("part", ["b ", "1 ", "maria ", "Maria 7 Lima "])
def test_a_person_with_many_names_takes_no_longer_to_find(part: str) -> None:
    """Fifty times the names take less than twenty times as long, in the same run."""
    text = part * (LONG // len(part))

    def took(person: Person) -> float:
        traces, times = Traces(person), []
        for _ in range(3):
            began = process_time()
            traces.redact(text, close=True)
            times.append(process_time() - began)
        return min(times)

    assert took(MANY) < 20 * took(ONE)
