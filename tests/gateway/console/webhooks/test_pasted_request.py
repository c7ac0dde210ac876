"""A pasted command: its words are those of a shell, and a long one is read quickly."""

import shlex
from random import Random
from time import perf_counter

import pytest

from gateway.console.webhooks.pasted_request import Unreadable, read, split


def test_words_are_those_of_a_shell() -> None:
    dice = Random(1)
    for _ in range(5_000):
        text = "".join(dice.choices("ab '\"\\\n\t#$", k=dice.randrange(12)))
        try:
            words = shlex.split(text)
        except ValueError:
            with pytest.raises(Unreadable):
                list(split(text))
        else:
            assert list(split(text)) == words, text


@pytest.mark.timed
@pytest.mark.parametrize("command", ["curl '{}'", "curl {}", 'curl "{}"'])
def test_a_word_of_64_kb_holds_up_nobody(command: str) -> None:
    text = command.format("a" * 65_000)
    began = perf_counter()
    read(text)
    assert perf_counter() - began < 0.03
