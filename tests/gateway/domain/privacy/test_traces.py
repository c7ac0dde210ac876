"""How a person is found in text, and how much is compared for it."""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from gateway.domain.contacts.person_erasures import Person
from gateway.domain.privacy import traces
from gateway.domain.privacy.automaton import Automaton
from gateway.domain.privacy.traces import Traces
from gateway.records.values.folding import fold
from gateway.records.values.formats import LONG

MANY = Person(
    names=tuple(f"Maria {number} Lima" for number in range(50)),
    emails=("maria@example.com",),
    aliases=tuple(f"maria{number}@example.com" for number in range(49)),
    phones=tuple(f"+55 11 98888-77{number:02}" for number in range(50)),
)
ZENOBIA = Person(
    names=("Zenóbia Quuxley", "Łucja D'Ávila", "Otto"),
    emails=("zenobia@quux.example", "josé@exämple.de", "straße@x.example"),
    phones=("(11) 97777-1234", "+351 912 345 678"),
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


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        # Accents as signs of their own, as files of a Mac have them.
        ("Zeno\u0301bia Quuxley", "*** ***"),
        ("zenobia_quuxley.pdf", "***_***.pdf"),
        ("Zenó\u00adbia Quux\u200bley", "*** ***"),
        ("Ｚｅｎｏｂｉａ\u00a0ＱＵＵＸＬＥＹ", "***\u00a0***"),
        ("lucja d\u2019avila", "*** ***\u2019***"),
        ("zenobia@\u200bquux.example", "***"),
        ("ｚｅｎｏｂｉａ＠quux.example!", "***!"),
        ("JOSE\u0301@EXÄMPLE.de is not jose@exämple.de", "*** is not jose@exämple.de"),
        ("STRASSE@x.example is another, Straße@x.example", "STRASSE@x.example is another, ***"),
        # Non-breaking hyphens, other digits, a trunk prefix, other ways to write a country.
        ("11\u00a097777\u20111234, 011 97777 1234", "***, ***"),
        ("\uff11\uff11\u0669\uff17\uff17\uff17\uff17\uff11\uff12\uff13\uff14", "***"),
        ("+351912345678, 00351 912-345-678", "***, ***"),
        ("Otto, Ottomotor, Bottrop, Lotto", "***, Ottomotor, Bottrop, Lotto"),
        ("111 97777 1234; 11 97777 12345", "111 97777 1234; 11 97777 12345"),
    ],
)
def test_a_trace_is_found_however_it_is_written(text: str, bare: str) -> None:
    assert Traces(ZENOBIA).redact(text, close=False) == bare


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r'{"Zenóbia Quuxley":1}', True),
        (r'{"said":"a\nZen\u00f3bia Quuxley"}', True),
        (r'"{\"said\":\"Zen\\u00f3bia\\tQuuxley\"}"', True),
        ("name=Z&email=zenobia%40quux.example", True),
        ("C:\\Zenóbia Quuxley", True),
        (r'{"said":"nothing\n","path":"100%"}', False),
    ],
)
def test_escapes_hide_nobody(text: str, found: bool) -> None:
    assert Traces(ZENOBIA).within_coded(text, close=False) is found


work = Counter[str]()


class Word(str):
    """A word that counts how often it is looked up or compared."""

    __slots__ = ()

    def __hash__(self) -> int:
        work["words"] += 1
        return super().__hash__()

    def __eq__(self, other: object) -> bool:
        work["words"] += 1
        return super().__eq__(other)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(traces, "fold", lambda word: Word(fold(word)))
    yield
    work.clear()


@pytest.mark.usefixtures("counting")
@pytest.mark.parametrize("word", ["a", "b", "é", "7"])
def test_names_that_begin_alike_are_compared_together(word: str) -> None:
    text = f"{word} " * 4_000

    known = Traces(Person(names=tuple("a " * 99 + str(number) for number in range(50))))
    work.clear()
    known.redact(text, close=True)
    # The words of a name would be a hundred for each.
    assert work["words"] < 6 * 4_000


@pytest.mark.parametrize("alike", [0, 1, 50])
@pytest.mark.parametrize(
    "text", [lambda n: "a" * n, lambda n: ("a" * 240 + "@") * (n // 241), lambda n: "@b" * (n // 2)]
)
def test_the_work_follows_the_text_alone(alike: int, text: Callable[[int], str]) -> None:
    known = Automaton([[*map(Word, "a" * 240 + f"{number}@b")] for number in range(alike)])
    for size in (2_000, LONG):
        symbols = [Word(sign) for sign in text(size)]
        work.clear()
        known.spans(symbols)
        # A look-up is one hash, and a comparison if it is found.
        assert work["words"] <= 4 * size


def test_overlapping_patterns_are_one_place() -> None:
    known = Automaton(["abcd", "cde", "b", "x"])
    assert known.spans("zabcdexzbz") == [(1, 7), (8, 9)]
    assert Automaton([]).spans("abc") == []
