"""Measures a document before it is validated, and refuses one that would cost too much.

Each fragment is measured once, and its figures are added where it is spread. Nothing is expanded:
twenty fragments that each spread the next one twice are measured in microseconds.
"""

from typing import NamedTuple

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
)

from gateway.graphql.tokens import too_complex

DEPTH = 15
"""The full introspection query is exactly 15 deep."""
ALIASES = 30
FIELDS = 100
"""Fields in one selection set, those of its fragments included."""
MUTATIONS = 5
DIRECTIVES = 50
OPERATIONS = 10
FRAGMENTS = 50
SHARED = 120
"""Operations times fragments: validation follows the fragments of each operation."""


class Size(NamedTuple):
    """The figures of a selection set with its fragments."""

    depth: int = 0
    aliases: int = 0
    directives: int = 0
    fields: int = 0


def fragments_of(document: DocumentNode) -> dict[str, FragmentDefinitionNode]:
    """Return the fragments by name. Raises GraphQLError when two have one name."""
    found: dict[str, FragmentDefinitionNode] = {}
    for definition in document.definitions:
        if isinstance(definition, FragmentDefinitionNode):
            name = definition.name.value
            if name in found:
                message = f"There can be only one fragment named '{name}'."
                raise GraphQLError(message, [found[name].name, definition.name])
            found[name] = definition
    return found


def must_be_modest(document: DocumentNode) -> None:
    """Raise query_too_complex, or GraphQLError for fragments that spread themselves."""
    fragments = fragments_of(document)
    if len(fragments) > FRAGMENTS:
        raise too_complex("cost", f"A document must not have more than {FRAGMENTS} fragments.")
    measured = Measured(fragments)
    operations = 0
    for definition in document.definitions:
        if isinstance(definition, FragmentDefinitionNode):
            _check(measured.fragment(definition.name.value))
        elif isinstance(definition, OperationDefinitionNode):
            operations += 1
            size = measured.selections(definition.selection_set)
            own = len(definition.directives or ()) + sum(
                len(variable.directives or ()) for variable in definition.variable_definitions or ()
            )
            _check(size._replace(directives=size.directives + own))
            if definition.operation is OperationType.MUTATION and size.fields > MUTATIONS:
                raise too_complex(
                    "cost", f"A document must not have more than {MUTATIONS} mutations."
                )
    if operations > OPERATIONS:
        raise too_complex("cost", f"A document must not have more than {OPERATIONS} operations.")
    if operations * len(fragments) > SHARED:
        raise too_complex("cost", "The document has too many operations for its fragments.")


class Measured:
    """The sizes of the fragments of a document, each measured once."""

    def __init__(self, fragments: dict[str, FragmentDefinitionNode]) -> None:
        self._fragments = fragments
        self._sizes: dict[str, Size] = {}
        self._open: list[str] = []

    def fragment(self, name: str) -> Size:
        """Return the size of a fragment; of an unknown one, which validation refuses, nothing."""
        size = self._sizes.get(name)
        if size is None:
            definition = self._fragments.get(name)
            if definition is None:
                return Size()
            if name in self._open:
                raise GraphQLError(
                    f"Cannot spread fragment '{name}' within itself.", definition.name
                )
            self._open.append(name)
            size = self.selections(definition.selection_set)
            self._open.pop()
            own = len(definition.directives or ())
            size = self._sizes[name] = size._replace(directives=size.directives + own)
        return size

    def selections(self, found: SelectionSetNode) -> Size:
        """Return the size of a selection set."""
        depth = aliases = directives = fields = 0
        for selection in found.selections:
            directives += len(selection.directives or ())
            if isinstance(selection, FieldNode):
                fields += 1
                aliases += selection.alias is not None
                inner = Size()
                if selection.selection_set is not None:
                    inner = self.selections(selection.selection_set)
                depth = max(depth, inner.depth + 1)
            else:
                if isinstance(selection, InlineFragmentNode):
                    inner = self.selections(selection.selection_set)
                else:
                    assert isinstance(selection, FragmentSpreadNode)
                    inner = self.fragment(selection.name.value)
                depth = max(depth, inner.depth)
                # An empty fragment counts too: validation compares each with each.
                fields += max(inner.fields, 1)
            aliases += inner.aliases
            directives += inner.directives
        if fields > FIELDS:
            raise too_complex("cost", f"A selection set must not have more than {FIELDS} fields.")
        return Size(depth, aliases, directives, fields)


def _check(size: Size) -> None:
    if size.depth > DEPTH:
        raise too_complex("depth", f"The document must not be deeper than {DEPTH} fields.")
    if size.aliases > ALIASES:
        raise too_complex("cost", f"The document must not have more than {ALIASES} aliases.")
    if size.directives > DIRECTIVES:
        raise too_complex("cost", f"The document must not have more than {DIRECTIVES} directives.")
