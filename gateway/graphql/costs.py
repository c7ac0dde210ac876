"""Computes the cost of an operation: the number of objects that its lists may hold.

The cost is the sum of all page sizes; a list inside of a list counts once for each of its objects.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from graphql import (
    FieldNode,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    IntValueNode,
    ListValueNode,
    OperationDefinitionNode,
    ValueNode,
    VariableNode,
)

from gateway.graphql.errors import too_complex

COST = 5_000
VALUES = 20_000
"""Values of fields in a response: the objects of lists times their fields."""
INTROSPECTED = 60_000
"""Values in the response of an operation that reads nothing but the schema."""
COMPLETED = 60_000
"""Values in a response with those of lists without pages, whose size no document tells. A page of
100 products with 50 images and 50 categories each has as many."""
WEIGHED = 1_000
"""Values that one request may have; each further thousand counts as a request more."""
WHOLE: Mapping[str, int] = {"categories": 1_000}
"""The queries that return a list without pages, and the most objects in it."""
SIZED = frozenset({"first", "last", "ids"})
"""The arguments that set the size of a list."""


class Cost(NamedTuple):
    """The objects and the values of a selection set, without those of `varying`."""

    objects: int = 0
    values: int = 0
    varying: tuple["VaryingField", ...] = ()
    """The fields whose cost depends on variables."""

    @property
    def weight(self) -> int:
        """The number of requests that the operation counts as."""
        return weight_of(self.values)

    def must_be_affordable(self, *, introspection: bool) -> None:
        """Raise query_too_complex. `introspection`: the operation reads nothing but the schema."""
        most = INTROSPECTED if introspection else VALUES
        if self.objects > COST:
            raise too_complex(
                "cost",
                f"The lists of the operation may hold {_shown(self.objects)} "
                f"objects; the limit is {COST}. Ask for smaller pages.",
            )
        if self.values > most:
            raise too_complex(
                "cost",
                f"The response may hold {_shown(self.values)} values; the limit is "
                f"{most}. Ask for smaller pages or fewer fields.",
            )


def weight_of(values: int) -> int:
    """Return the number of requests that a response with so many values counts as."""
    return max(1, -(-values // WEIGHED))


class VaryingField(NamedTuple):
    """A field whose size, or the cost of whose selections, depends on variables."""

    sizes: list[ValueNode]
    """The arguments that set its size."""
    default: int | None
    """Its size without them; None for a field without a size."""
    selections: Cost


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

    def field(
        self, field: FieldNode, selections: Cost, *, introspected: bool, root: bool = False
    ) -> Cost:
        """Return the cost of a field.

        `introspected`: it is a field of the schema itself. `root`: it is a query.
        """
        name = field.name.value
        sizes: list[ValueNode] = []
        if introspected:
            default = self.introspection.get(name)
        else:
            default = WHOLE.get(name) if root else None
            default = self.pages.get(name) if default is None else default
            sizes = [
                argument.value for argument in field.arguments or () if argument.name.value in SIZED
            ]
        if selections.varying or any(isinstance(size, VariableNode) for size in sizes):
            return Cost(0, 1, (VaryingField(sizes, default, selections),))
        objects, values = _multiplied(_size(sizes, default, {}), selections)
        return Cost(objects, 1 + values)


@cache
def prices(schema: GraphQLSchema) -> Prices:
    """Return the sizes of a schema's lists."""
    return Prices(schema)


def weigh(
    cost: Cost,
    operation: OperationDefinitionNode,
    variables: Mapping[str, Any] | None,
    *,
    introspection: bool,
) -> int:
    """Return the number of requests that an operation counts as with these variables.

    Raises query_too_complex when it costs too much.
    """
    whole = cost_with(cost, operation, variables)
    whole.must_be_affordable(introspection=introspection)
    return whole.weight


def cost_with(
    cost: Cost, operation: OperationDefinitionNode, variables: Mapping[str, Any] | None
) -> Cost:
    """Return the cost of an operation with the values of its variables."""
    if not cost.varying:
        return cost
    values = {
        definition.variable.name.value: definition.default_value
        for definition in operation.variable_definitions or ()
        if definition.default_value is not None
    } | dict(variables or {})
    return _evaluated(cost, values, {})


def _evaluated(cost: Cost, variables: Mapping[str, Any], known: dict[int, Cost]) -> Cost:
    """`known`: the selection sets that are evaluated, by `id`; fragments occur many times."""
    result = known.get(id(cost))
    if result is None:
        objects, values = cost.objects, cost.values
        for sizes, default, selections in cost.varying:
            below = _evaluated(selections, variables, known)
            more = _multiplied(_size(sizes, default, variables), below)
            objects += more[0]
            values += more[1]
        result = known[id(cost)] = Cost(objects, values)
    return result


def _multiplied(size: int | None, selections: Cost) -> tuple[int, int]:
    """Return the objects and the values of a field with these selections."""
    if size is None:
        return selections.objects, selections.values
    return size * (1 + selections.objects), size * selections.values


def _size(sizes: list[ValueNode], default: int | None, variables: Mapping[str, Any]) -> int | None:
    return max(
        (size for node in sizes if (size := _number(node, variables)) is not None), default=default
    )


def _number(node: ValueNode, variables: Mapping[str, Any]) -> int | None:
    """Return the size that a value sets; None for a value that is no size."""
    value: Any = variables.get(node.name.value) if isinstance(node, VariableNode) else node
    if isinstance(value, IntValueNode):
        # Digits beyond any limit; int() takes long for very many.
        value = int(value.value) if len(value.value) < 10 else COST + 1
    if isinstance(value, ListValueNode):
        return len(value.values)
    if isinstance(value, list):
        return len(value)
    # A number that the field refuses costs nothing.
    return max(int(value), 0) if isinstance(value, int | float) else None


def _shown(number: int) -> str:
    return str(number) if number < 10**9 else "more than 999999999"
