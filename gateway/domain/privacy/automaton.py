"""Finds many texts in one pass, whatever their number: the automaton of Aho and Corasick."""

from collections.abc import Iterable

import ahocorasick

PIECE = 4_096
"""Signs that are searched without a stop: other threads run between two pieces."""


class Automaton:
    """Finds the places of patterns in texts, those within and across others too."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = ahocorasick.Automaton(ahocorasick.STORE_LENGTH)
        for pattern in patterns:
            self._patterns.add_word(pattern)
        self._patterns.make_automaton()

    def within(self, text: str) -> bool:
        """Return whether the text has a pattern."""
        if not self._patterns:
            return False
        search = self._patterns.iter("")
        for start in range(0, len(text), PIECE):
            search.set(text[start : start + PIECE])
            for _ in search:
                return True
        return False

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the places that patterns cover, in order; those that touch are one."""
        covered: list[tuple[int, int]] = []
        if not self._patterns:
            return covered
        search = self._patterns.iter("")
        for place in range(0, len(text), PIECE):
            search.set(text[place : place + PIECE])
            for last, length in search:
                start = last + 1 - length
                while covered and covered[-1][1] >= start:
                    start = min(start, covered.pop()[0])
                covered.append((start, last + 1))
        return covered
