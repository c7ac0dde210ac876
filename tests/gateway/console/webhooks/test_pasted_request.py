"""A pasted command: its words are those of a shell, and a long one is read quickly."""

import shlex
from random import Random
from time import process_time

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


@pytest.mark.proof
@pytest.mark.parametrize("command", ["curl '{}'", "curl {}", 'curl "{}"'])
def test_a_word_of_64_kb_takes_as_long_as_eight_of_8_kb(command: str) -> None:
    """Four times as long at most, in the same run."""

    def took(length: int, times: int) -> float:
        text, best = command.format("a" * length), []
        for _ in range(5):
            began = process_time()
            for _ in range(times):
                read(text)
            best.append(process_time() - began)
        return min(best)

    assert took(64_000, 1) < 4 * took(8_000, 8)
