"""Counts the pairs of fields that validation compares because they have one name in the response.

Validation compares each with each, so their number grows with the square of the document.
"""

from collections import defaultdict
from collections.abc import Iterable

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
)

from gateway.graphql.tokens import too_complex

PAIRS = 5_000
VISITS = 10_000
"""Fields that are counted at most, in all combinations of selection sets that merge."""


def must_hardly_overlap(
    document: DocumentNode, fragments: dict[str, FragmentDefinitionNode]
) -> None:
    """Raise query_too_complex when validation would compare too many pairs of fields."""
    counter = _Counter(fragments)
    for definition in document.definitions:
        if isinstance(definition, OperationDefinitionNode | FragmentDefinitionNode):
            counter.merge((definition.selection_set,))


class _Counter:
    def __init__(self, fragments: dict[str, FragmentDefinitionNode]) -> None:
        self._fragments = fragments
        self._seen: set[frozenset[int]] = set()
        self._visits = 0
        self._pairs = 0

    def merge(self, merged: Iterable[SelectionSetNode]) -> None:
        """Count the pairs in selection sets that are merged into one, and in those below."""
        waiting = list(merged)
        group = frozenset(map(id, waiting))
        if group in self._seen:
            return
        self._seen.add(group)
        named: dict[str, list[SelectionSetNode]] = defaultdict(list)
        counts: dict[str, int] = defaultdict(int)
        spread: set[str] = set()
        while waiting:
            for selection in waiting.pop().selections:
                self._visits += 1
                if isinstance(selection, FieldNode):
                    name = (selection.alias or selection.name).value
                    self._pairs += counts[name]
                    counts[name] += 1
                    if selection.selection_set is not None:
                        named[name].append(selection.selection_set)
                elif isinstance(selection, FragmentSpreadNode):
                    fragment = self._fragments.get(selection.name.value)
                    if fragment is not None and selection.name.value not in spread:
                        spread.add(selection.name.value)
                        waiting.append(fragment.selection_set)
                elif isinstance(selection, InlineFragmentNode):
                    waiting.append(selection.selection_set)
            if self._pairs > PAIRS or self._visits > VISITS:
                raise too_complex("cost", "The document has too many fields of the same name.")
        for below in named.values():
            self.merge(below)
