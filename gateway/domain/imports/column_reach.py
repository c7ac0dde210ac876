"""Refuses columns that make records of a kind that the caller's key is not for."""

from collections.abc import Sequence

from gateway.domain.imports.columns import MAKES
from gateway.domain.imports.source_files import Source
from gateway.records.audit import Actor
from gateway.records.errors import Refusal


class ColumnReach:
    """What the columns of a file may make. Those of cards are in every file: filled ones count."""

    def __init__(self, actor: Actor, source: Source) -> None:
        self._allowed = actor.resources
        self._source = source
        self._filled: set[int] = set()

    def see(self, cells: Sequence[str]) -> None:
        """Note the cells of a line."""
        if self._allowed is not None and self._source.has_cards:
            self._filled.update(place for place, cell in enumerate(cells) if cell)

    def must_do(self, targets: Sequence[str]) -> None:
        """Raise forbidden when a column with one of these targets makes other records."""
        if self._allowed is None:
            return
        for place, target in enumerate(targets):
            made = MAKES.get(target)
            counts = not self._source.has_cards or place in self._filled
            if made is not None and made not in self._allowed and counts:
                heading = self._source.file.headings[place][:64]
                raise Refusal(
                    "forbidden",
                    f"This API key is only for {', '.join(sorted(self._allowed))}, not for {made}, "
                    f"which the column {heading} makes; leave it out by `columns`, or use a key "
                    "for both.",
                )
