"""Caches the children of labelled meters: a look-up by name costs more than the count itself."""

from collections.abc import Callable

from prometheus_client import Counter, Histogram


class Counters(dict[tuple[str, ...], Counter]):
    """A cache of a counter's children by label values."""

    def __init__(self, parent: Counter) -> None:
        super().__init__()
        self._parent = parent

    def __missing__(self, labels: tuple[str, ...]) -> Counter:
        child: Counter = self._parent.labels(*labels)
        self[labels] = child
        return child


class Timings(dict[tuple[str, ...], Callable[[float], None]]):
    """A cache of the `observe` methods of a histogram's children by label values."""

    def __init__(self, parent: Histogram) -> None:
        super().__init__()
        self._parent = parent

    def __missing__(self, labels: tuple[str, ...]) -> Callable[[float], None]:
        observe: Callable[[float], None] = self._parent.labels(*labels).observe
        self[labels] = observe
        return observe
