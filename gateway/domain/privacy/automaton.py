"""Finds many texts in one pass, whatever their number: the automaton of Aho and Corasick."""

from collections.abc import Iterable, Iterator

import ahocorasick

PIECE = 4_096
"""Signs that are searched without a stop: other threads run between two pieces."""


class Automaton:
    """Finds the places of patterns in texts, those within and across others too."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = ahocorasick.Automaton(ahocorasick.STORE_LENGTH)
        self._before = 0
        for pattern in patterns:
            self._patterns.add_word(pattern)
            self._before = max(self._before, len(pattern) - 1)
        self._patterns.make_automaton()

    def within(self, text: str) -> bool:
        """Return whether the text has a pattern."""
        return next(self._found(text), None) is not None

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return the places that patterns cover, in order; those that touch are one."""
        covered: list[tuple[int, int]] = []
        for start, end in self._found(text):
            while covered and covered[-1][1] >= start:
                start = min(start, covered.pop()[0])
            covered.append((start, end))
        return covered

    def _found(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the places of patterns, in the order of their ends.

        Each piece has a search of its own, which begins before it by the longest pattern: one that
        goes on (`set`) destroys memory when some pieces have signs above U+FFFF and others none.
        """
        if not self._patterns:
            return
        size = max(PIECE, self._before)
        for place in range(0, len(text), size):
            first = max(0, place - self._before)
            for last, length in self._patterns.iter(text[first : place + size]):
                end = first + last + 1
                # The piece before has those that end before this one.
                if end > place:
                    yield end - length, end
