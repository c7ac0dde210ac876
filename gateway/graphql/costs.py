"""Computes the cost of an operation: the number of objects that its lists may hold.

The cost is the sum of all page sizes; a list inside of a list counts once for each of its objects.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    SelectionSetNode,
    ValueNode,
    VariableNode,
)

from gateway.graphql.tokens import too_complex

COST = 5_000
VALUES = 20_000
"""Values of fields in a response: the objects of lists times their fields."""
INTROSPECTED = 60_000
"""Values in the response of an operation that reads nothing but the schema."""
WEIGHED = 1_000
"""Values that one request may have; each further thousand counts as a request more."""
SIZED = frozenset({"first", "last", "ids"})
"""The arguments that set the size of a list."""


class Cost(NamedTuple):
    """The objects and the values of a selection set."""

    objects: int = 0
    values: int = 0


class Prices:
    """The sizes of lists without an argument: the defaults of pages, and of the schema itself."""

    def __init__(self, schema: GraphQLSchema) -> None:
        self.pages: dict[str, int] = {}
        kinds = [k for k in schema.type_map.values() if not k.name.startswith("__")]
        for kind in kinds:
            if isinstance(kind, GraphQLObjectType | GraphQLInterfaceType):
                for name, field in kind.fields.items():
                    node = field.args["first"].ast_node if "first" in field.args else None
                    if node is not None and isinstance(node.default_value, IntValueNode):
                        size = int(node.default_value.value)
                        self.pages[name] = max(size, self.pages.get(name, 0))
        objects = [k for k in kinds if isinstance(k, GraphQLObjectType)]
        fields = sum(len(kind.fields) for kind in objects)
        self.introspection = {
            "types": len(schema.type_map),
            "fields": -(-fields // len(kinds)),
            "inputFields": -(-fields // len(kinds)),
            "args": 1, "enumValues": 1, "interfaces": 1, "possibleTypes": 1,
            "directives": len(schema.directives),
        }  # fmt: skip


class Bill:
    """The cost of an operation with its variables; each fragment is computed once."""

    def __init__(
        self,
        prices: Prices,
        fragments: Mapping[str, FragmentDefinitionNode],
        operation: OperationDefinitionNode,
        variables: Mapping[str, Any] | None,
    ) -> None:
        self._prices = prices
        self._fragments = fragments
        self._variables = {
            definition.variable.name.value: definition.default_value
            for definition in operation.variable_definitions or ()
            if definition.default_value is not None
        } | dict(variables or {})
        self._known: dict[str, Cost] = {}
        self.varies = False
        """Whether the cost depends on variables."""
        self.total = self._selections(operation.selection_set, shown=False)

    @property
    def weight(self) -> int:
        """The number of requests that the operation counts as."""
        return max(1, -(-self.total.values // WEIGHED))

    def must_be_affordable(self, *, introspection: bool) -> None:
        """Raise query_too_complex. `introspection`: the operation reads nothing but the schema."""
        most = INTROSPECTED if introspection else VALUES
        if self.total.objects > COST:
            raise too_complex(
                "cost", f"The lists of the operation may hold {_shown(self.total.objects)} "
                f"objects; the limit is {COST}. Ask for smaller pages.",
            )  # fmt: skip
        if self.total.values > most:
            raise too_complex(
                "cost", f"The response may hold {_shown(self.total.values)} values; the limit is "
                f"{most}. Ask for smaller pages or fewer fields.",
            )  # fmt: skip

    def _selections(self, found: SelectionSetNode, *, shown: bool) -> Cost:
        """`shown`: inside of the schema that introspection shows."""
        objects = values = 0
        for selection in found.selections:
            if isinstance(selection, FieldNode):
                name = selection.name.value
                below = Cost()
                inside = shown or name in ("__schema", "__type")
                if selection.selection_set is not None:
                    below = self._selections(selection.selection_set, shown=inside)
                size = self._size(selection, shown=shown)
                if size is None:
                    objects += below.objects
                    values += 1 + below.values
                else:
                    objects += size * (1 + below.objects)
                    values += 1 + size * below.values
            else:
                if isinstance(selection, InlineFragmentNode):
                    below = self._selections(selection.selection_set, shown=shown)
                else:
                    assert isinstance(selection, FragmentSpreadNode)
                    below = self._fragment(selection.name.value)
                objects += below.objects
                values += below.values
        return Cost(objects, values)

    def _fragment(self, name: str) -> Cost:
        known = self._known.get(name)
        if known is None:
            definition = self._fragments.get(name)
            if definition is None:
                return Cost()
            shown = definition.type_condition.name.value.startswith("__")
            known = self._known[name] = self._selections(definition.selection_set, shown=shown)
        return known

    def _size(self, field: FieldNode, *, shown: bool) -> int | None:
        """Return the size of a field's list, or None for a field without a size."""
        name = field.name.value
        if shown:
            return self._prices.introspection.get(name)
        sizes = [
            size
            for argument in field.arguments or ()
            if argument.name.value in SIZED and (size := self._value(argument.value)) is not None
        ]
        return max(sizes) if sizes else self._prices.pages.get(name)

    def _value(self, node: ValueNode) -> int | None:
        """Return the size that a value sets; None for a value that is no size."""
        found: Any = node
        if isinstance(node, VariableNode):
            self.varies = True
            found = self._variables.get(node.name.value)
        if isinstance(found, IntValueNode):
            # Digits beyond any limit; int() takes long for very many.
            found = int(found.value) if len(found.value) < 10 else COST + 1
        if isinstance(found, ListValueNode):
            return len(found.values)
        if isinstance(found, list):
            return len(found)
        # A number that the field refuses costs nothing.
        return max(int(found), 0) if isinstance(found, int | float) else None


def _shown(number: int) -> str:
    return str(number) if number < 10**9 else "more than 999999999"


@cache
def prices(schema: GraphQLSchema) -> Prices:
    """Return the sizes of a schema's lists."""
    return Prices(schema)
