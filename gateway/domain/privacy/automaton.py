"""Finds many sequences of symbols in one pass, whatever their number: Aho and Corasick, 1975."""

from collections import deque
from collections.abc import Hashable, Iterable, Sequence


class Automaton:
    """Finds the places of patterns; symbols are characters, words or anything that has a hash.

    It looks up fewer than three symbols for each one of the text.
    """

    def __init__(self, patterns: Iterable[Sequence[Hashable]]) -> None:
        self._next: list[dict[Hashable, int]] = [{}]
        self._longest = [0]
        """The length of the longest pattern that ends in each state."""
        for pattern in patterns:
            state = 0
            for symbol in pattern:
                state = self._next[state].setdefault(symbol, len(self._next))
                if state == len(self._next):
                    self._next.append({})
                    self._longest.append(0)
            self._longest[state] = max(self._longest[state], len(pattern))
        self._shorter = self._suffixes()

    def _suffixes(self) -> list[int]:
        """Return for each state that of its longest proper suffix which begins a pattern."""
        shorter = [0] * len(self._next)
        waiting = deque(self._next[0].values())
        while waiting:
            state = waiting.popleft()
            for symbol, deeper in self._next[state].items():
                suffix = shorter[state]
                while suffix and symbol not in self._next[suffix]:
                    suffix = shorter[suffix]
                shorter[deeper] = self._next[suffix].get(symbol, 0)
                waiting.append(deeper)
            self._longest[state] = max(self._longest[state], self._longest[shorter[state]])
        return shorter

    def spans(self, symbols: Iterable[Hashable]) -> list[tuple[int, int]]:
        """Return the places that patterns cover, in order; those that touch are one."""
        nexts, shorter, longest = self._next, self._shorter, self._longest
        if len(nexts) == 1:
            return []
        state = 0
        found: list[tuple[int, int]] = []
        for end, symbol in enumerate(symbols, 1):
            deeper = nexts[state].get(symbol)
            while deeper is None and state:
                state = shorter[state]
                deeper = nexts[state].get(symbol)
            state = deeper or 0
            if length := longest[state]:
                start = end - length
                while found and found[-1][1] >= start:
                    start = min(start, found.pop()[0])
                found.append((start, end))
        return found
