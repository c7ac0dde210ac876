"""Refuses documents beyond a limit: by their text before parsing, by their tree before validation.

The parser calls itself for each bracket, so a document that nests deeper than the stack must not
reach it. The tree is measured in one walk. Each fragment is measured once, and its figures are
added where it is spread. Nothing is expanded: twenty fragments that each spread the next one twice
are measured in microseconds.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
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

from gateway.graphql.costs import Cost, Prices, VaryingField
from gateway.graphql.errors import too_complex

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
PAIRS = 5_000
"""Pairs of fields with one name in the response; validation compares each with each."""
VISITS = 10_000
"""Fields that are counted at most, in all combinations of selection sets that merge."""


class Size(NamedTuple):
    """The figures of a selection set with its fragments."""

    depth: int = 0
    aliases: int = 0
    directives: int = 0
    fields: int = 0
    cost: Cost = Cost()


def measure(document: DocumentNode, prices: Prices) -> dict[int, Cost]:
    """Return the cost of each operation by its `id`.

    Raises query_too_complex, and GraphQLError for two fragments of one name and for fragments that
    spread themselves.
    """
    fragments = _fragments_of(document)
    if len(fragments) > FRAGMENTS:
        raise too_complex("cost", f"A document must not have more than {FRAGMENTS} fragments.")
    walk = _Walk(fragments, prices)
    costs: dict[int, Cost] = {}
    for definition in document.definitions:
        if isinstance(definition, FragmentDefinitionNode):
            _check(walk.fragment(definition.name.value))
        elif isinstance(definition, OperationDefinitionNode):
            size = walk.selections(definition.selection_set, root=True)
            costs[id(definition)] = size.cost
            own = len(definition.directives or ()) + sum(
                len(variable.directives or ()) for variable in definition.variable_definitions or ()
            )
            _check(size._replace(directives=size.directives + own))
            if definition.operation is OperationType.MUTATION and size.fields > MUTATIONS:
                raise too_complex(
                    "cost", f"A document must not have more than {MUTATIONS} mutations."
                )
    if len(costs) > OPERATIONS:
        raise too_complex("cost", f"A document must not have more than {OPERATIONS} operations.")
    if len(costs) * len(fragments) > SHARED:
        raise too_complex("cost", "The document has too many operations for its fragments.")
    overlaps = _Overlaps(fragments)
    for definition in document.definitions:
        if isinstance(definition, OperationDefinitionNode | FragmentDefinitionNode):
            overlaps.merge((definition.selection_set,))
    return costs


def _fragments_of(document: DocumentNode) -> dict[str, FragmentDefinitionNode]:
    """Return the fragments by name. Raises GraphQLError when two have one name."""
    fragments: dict[str, FragmentDefinitionNode] = {}
    for definition in document.definitions:
        if isinstance(definition, FragmentDefinitionNode):
            name = definition.name.value
            if name in fragments:
                message = f"There can be only one fragment named '{name}'."
                raise GraphQLError(message, [fragments[name].name, definition.name])
            fragments[name] = definition
    return fragments


class _Walk:
    """Measures selection sets, and each fragment once."""

    def __init__(self, fragments: dict[str, FragmentDefinitionNode], prices: Prices) -> None:
        self._fragments = fragments
        self._prices = prices
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
            kind = definition.type_condition.name.value
            size = self.selections(
                definition.selection_set, introspected=kind.startswith("__"), root=kind == "Query"
            )
            self._open.pop()
            own = len(definition.directives or ())
            size = self._sizes[name] = size._replace(directives=size.directives + own)
        return size

    def selections(
        self, selections: SelectionSetNode, *, introspected: bool = False, root: bool = False
    ) -> Size:
        """Return the size of a selection set.

        `introspected`: of the schema itself. `root`: of the queries.
        """
        depth = aliases = directives = fields = objects = values = 0
        varying: list[VaryingField] = []
        for selection in selections.selections:
            directives += len(selection.directives or ())
            if isinstance(selection, FieldNode):
                fields += 1
                aliases += selection.alias is not None
                inner = Size()
                if selection.selection_set is not None:
                    inner = self.selections(
                        selection.selection_set,
                        introspected=introspected or selection.name.value in ("__schema", "__type"),
                    )
                depth = max(depth, inner.depth + 1)
                cost = self._prices.field(
                    selection, inner.cost, introspected=introspected, root=root
                )
            else:
                if isinstance(selection, InlineFragmentNode):
                    inner = self.selections(
                        selection.selection_set, introspected=introspected, root=root
                    )
                else:
                    assert isinstance(selection, FragmentSpreadNode)
                    inner = self.fragment(selection.name.value)
                depth = max(depth, inner.depth)
                # An empty fragment counts too: validation compares each with each.
                fields += max(inner.fields, 1)
                cost = inner.cost
            aliases += inner.aliases
            directives += inner.directives
            objects += cost.objects
            values += cost.values
            varying += cost.varying
        if fields > FIELDS:
            raise too_complex("cost", f"A selection set must not have more than {FIELDS} fields.")
        return Size(depth, aliases, directives, fields, Cost(objects, values, tuple(varying)))


def _check(size: Size) -> None:
    if size.depth > DEPTH:
        raise too_complex("depth", f"The document must not be deeper than {DEPTH} fields.")
    if size.aliases > ALIASES:
        raise too_complex("cost", f"The document must not have more than {ALIASES} aliases.")
    if size.directives > DIRECTIVES:
        raise too_complex("cost", f"The document must not have more than {DIRECTIVES} directives.")


class _Overlaps:
    """Counts the pairs of fields that validation compares: selection sets that merge, together.

    Their number grows with the square of the document, so it is no sum of sizes.
    """

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


CHARACTERS = 32_768
TOKENS = 1_000
"""Comments count too, as they do for the parser."""
ARGUMENTS = 500
"""Tokens inside of parentheses: an error of such a value takes long to print."""
TEXT = 10_000
"""Characters of all strings in a document: the lexer reads them one by one."""
BRACKETS = 60
"""Levels of nested brackets of any kind: selection sets, lists, objects and arguments."""

# Possessive, so that no text makes it try the same characters twice.
_TOKEN = re.compile(
    r"""[\s,\ufeff]*+
    (?: \#[^\n\r]*+ | (?P<open>[{\[(]) | (?P<close>[}\])]) | [!$&:=@|] | \.\.\.
      | [A-Za-z_0-9.+-]++
      | (?P<text> \"\"\"(?:[^"\\]|\\(?:\"\"\")?+|\"(?!\"\"))*+\"\"\"
      | \"(?!\"\")(?:[^"\\\n\r]|\\.)*+\" ) )""",
    re.VERBOSE,
)


def must_be_short(text: str) -> None:
    """Raise query_too_complex for a text with too many characters, tokens or nested brackets."""
    if len(text) > CHARACTERS:
        raise too_complex("tokens", f"The document must not exceed {CHARACTERS} characters.")
    match = _TOKEN.match
    place = level = arguments = characters = 0
    outer: list[int] = []
    for _ in range(TOKENS):
        token = match(text, place)
        if token is None:
            # The end, or a text that the parser refuses, such as a string that never ends.
            characters += len(text) - place
            break
        place = token.end()
        arguments += bool(outer)
        bracket = token["open"]
        if bracket is not None:
            level += 1
            if bracket == "(":
                outer.append(level)
            if level > BRACKETS:
                raise too_complex(
                    "depth", f"The document must not nest more than {BRACKETS} brackets."
                )
        elif token["close"] is not None:
            if outer and outer[-1] == level:
                outer.pop()
            level -= 1
        elif token["text"] is not None:
            characters += len(token["text"])
        if arguments > ARGUMENTS:
            raise too_complex(
                "tokens", f"The arguments must not exceed {ARGUMENTS} tokens; use variables."
            )
    else:
        if match(text, place) is not None:
            raise too_complex("tokens", f"The document must not exceed {TOKENS} tokens.")
    if characters > TEXT and not text[place:].isspace():
        raise too_complex(
            "tokens", f"The strings must not exceed {TEXT} characters; use variables."
        )
