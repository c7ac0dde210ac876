"""How a person is found in text, and how much is compared for it."""

import asyncio
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest

from gateway.domain.contacts.person_erasures import Person
from gateway.domain.privacy import automaton, traces
from gateway.domain.privacy.apart import GIVES_WAY, apart
from gateway.domain.privacy.automaton import Automaton
from gateway.domain.privacy.traces import Traces
from gateway.records.values.folding import fold

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
        ("MARIA3@Example.com, xmaria@example.com", "***, xmaria@example.com"),
        ("maria@example.com.br, x=maria@example.com.", "maria@example.com.br, x=***."),
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
        ("x\u200bzenobia@quux.example", "x\u200bzenobia@quux.example"),
        ("josé@XN--EXMPLE-CUA.de", "***"),
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
        # A plus is a space in a form, and stands escaped for itself.
        ("text=ask+zenobia%40quux.example", True),
        ("to=ask%2Bzenobia%40quux.example", False),
        ("to=ask+zenobia@quux.example&path=100%25", False),
        (r'{"to":"\u003czenobia@quux.example\u003e"}', True),
        (r'{"to":"\u00e9zenobia@quux.example"}', False),
        (r'{"to":"ask\nzenobia@quux.example\n"}', True),
        # A letter beyond the first 65,536 is two escapes; a text may be JSON often.
        (r'{"name":"\ud835\udc19enobia Quuxley"}', True),
        (r'"[\\\"\\\\\\\"Zen\\\\u00f3bia\\\\\\\tQuuxley"', True),
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


def test_overlapping_patterns_are_one_place() -> None:
    known = Automaton(["abcd", "cde", "b", "x"])
    assert known.spans("zabcdexzbz") == [(1, 7), (8, 9)]
    assert Automaton([]).spans("abc") == []


def test_patterns_are_found_wherever_a_piece_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others run between two pieces; the places are those of a search for one after another."""
    monkeypatch.setattr(automaton, "PIECE", 3)
    dice = random.Random(44)
    for _ in range(200):
        patterns = {"".join(dice.choices("abé😀", k=dice.randint(1, 5))) for _ in range(4)}
        text = "".join(dice.choices("abéx😀", k=40))
        known = Automaton(patterns)
        covered = {
            place for one in patterns for start in range(len(text)) if text.startswith(one, start)
            for place in range(start, start + len(one))
        }  # fmt: skip
        found = known.spans(text)
        assert {place for start, end in found for place in range(start, end)} == covered
        assert all(end < start for (_, end), (start, _) in pairwise(found))
        assert known.within(text) is bool(covered)


def test_long_texts_with_and_without_emoji_leave_the_memory_whole() -> None:
    """Python checks each block of memory: without it, the process ends at some later time."""
    code = (
        "from gateway.domain.privacy.automaton import Automaton\n"
        "known, text = Automaton(['ab']), 'x' * 5_000 + chr(0x1F600) * 5_000 + 'é' * 9_000 + 'ab'\n"
        "assert known.within(text) and known.spans(text) == [(19_000, 19_002)]"
    )
    checking = os.environ | {"PYTHONMALLOC": "debug"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=checking, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_searches_give_way_to_requests() -> None:
    async def two() -> list[float]:
        return list(
            await asyncio.gather(apart(sys.getswitchinterval), apart(sys.getswitchinterval))
        )

    usual = sys.getswitchinterval()
    assert asyncio.run(two()) == [pytest.approx(GIVES_WAY)] * 2
    assert sys.getswitchinterval() == usual
