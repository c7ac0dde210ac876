"""Keeps parsed and validated documents, so that a repeated one costs a look-up.

A document that fails is not kept: a client can write as many of them as it likes.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    parse,
    validate,
    visit,
)

from gateway.graphql.costs import Cost, prices, weigh
from gateway.graphql.document_limits import TOKENS, measure, must_be_short
from gateway.records.errors import Refusal

KEPT_CHARACTERS: Final = 250_000
"""Characters of all kept documents; each takes about a hundred bytes once it is parsed."""


class Invalid(Exception):
    """A document that is not executed; `errors` says why, `outcome` in which step."""

    def __init__(self, errors: list[GraphQLError], outcome: str) -> None:
        super().__init__(outcome)
        self.errors = errors
        self.outcome = outcome


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A valid document."""

    schema: GraphQLSchema
    document: DocumentNode
    deprecated: str
    """The deprecated fields that it selects, such as `Product.groups`, with commas between."""
    operations: Mapping[str, OperationDefinitionNode]
    """The operations by name; the empty name for one without."""
    introspecting: frozenset[str]
    """The names of the operations that read nothing but the schema."""
    costs: Mapping[int, Cost]
    """The costs of the operations by their `id`."""
    weights: Mapping[int, int]
    """The number of requests that an operation counts as, where no variable changes it."""

    def operation(self, name: str | None) -> OperationDefinitionNode | None:
        """Return the operation with this name, or the only one; None when there is none."""
        if name is None:
            operations = list(self.operations.values())
            return operations[0] if len(operations) == 1 else None
        return self.operations.get(name)

    def introspects(self, operation: OperationDefinitionNode) -> bool:
        """Return whether an operation reads nothing but the schema."""
        return name_of(operation) in self.introspecting

    def weight(
        self, operation: OperationDefinitionNode, variables: Mapping[str, Any] | None
    ) -> int:
        """Return the number of requests that an operation counts as with these variables.

        Raises query_too_complex when it costs too much.
        """
        fixed = self.weights.get(id(operation))
        if fixed is not None:
            return fixed
        cost = self.costs[id(operation)]
        return weigh(cost, operation, variables, introspection=self.introspects(operation))


class Documents:
    """The documents that were used last."""

    def __init__(self, schema: GraphQLSchema, most: int = KEPT_CHARACTERS) -> None:
        self._schema = schema
        self._most = most
        self._known: OrderedDict[str, Known] = OrderedDict()
        self._characters = 0
        self.introspecting = asyncio.Lock()
        """Held while an operation reads the schema, which takes a tenth of a second."""

    def __len__(self) -> int:
        return len(self._known)

    def read(self, text: str, variables: Mapping[str, Any] | None = None) -> Known:
        """Return a valid document. Raises Invalid.

        `variables` set the sizes of pages, and so the cost of its operations.
        """
        known = self._known.get(text)
        if known is not None:
            self._known.move_to_end(text)
            return known
        known = self._examine(text, variables)
        self._known[text] = known
        self._characters += len(text)
        while self._characters > self._most:
            dropped, _ = self._known.popitem(last=False)
            self._characters -= len(dropped)
        return known

    def _examine(self, text: str, variables: Mapping[str, Any] | None) -> Known:
        try:
            must_be_short(text)
            document = parse(text, max_tokens=TOKENS)
            costs = measure(document, prices(self._schema))
            operations = operations_of(document)
            introspecting = frozenset(
                name for name, operation in operations.items() if only_introspects(operation)
            )
            weights = {}
            for name, operation in operations.items():
                cost = costs[id(operation)]
                weight = weigh(cost, operation, variables, introspection=name in introspecting)
                if not cost.varying:
                    weights[id(operation)] = weight
            known = Known(
                schema=self._schema, document=document, deprecated="", operations=operations,
                introspecting=introspecting, costs=costs, weights=weights,
            )  # fmt: skip
        except GraphQLError as error:
            raise Invalid([error], "rejected_parse") from None
        except Refusal as refusal:
            limit = refusal.facts.get("limit", "cost")
            raise Invalid([of_refusal(refusal)], f"rejected_{limit}") from None
        faults = validate(self._schema, document, hide_suggestions=True, max_errors=20)
        if faults:
            raise Invalid(faults, "rejected_parse")
        return replace(known, deprecated=deprecated_in(self._schema, document))


def of_refusal(refusal: Refusal) -> GraphQLError:
    """Return the error of a refusal that no field raised."""
    return GraphQLError(refusal.message, original_error=refusal)


def name_of(operation: OperationDefinitionNode) -> str:
    """Return the name of an operation; empty for one without."""
    return operation.name.value if operation.name else ""


def operations_of(document: DocumentNode) -> dict[str, OperationDefinitionNode]:
    """Return the operations by name. Raises GraphQLError when two have one name."""
    operations: dict[str, OperationDefinitionNode] = {}
    for definition in document.definitions:
        if isinstance(definition, OperationDefinitionNode):
            name = name_of(definition)
            if name in operations:
                message = (
                    f"There can be only one operation named '{name}'."
                    if name
                    else "This anonymous operation must be the only defined operation."
                )
                raise GraphQLError(message, [operations[name], definition])
            operations[name] = definition
    return operations


def only_introspects(operation: OperationDefinitionNode) -> bool:
    """Return whether an operation reads nothing but the schema."""
    return operation.operation is OperationType.QUERY and all(
        isinstance(selection, FieldNode) and selection.name.value.startswith("__")
        for selection in operation.selection_set.selections
    )


def deprecated_in(schema: GraphQLSchema, document: DocumentNode) -> str:
    """Return the deprecated fields that a document selects, sorted, with commas between."""
    info = TypeInfo(schema)
    deprecated: set[str] = set()

    class Finder(Visitor):
        def enter_field(self, node: FieldNode, *_: Any) -> None:
            field, parent = info.get_field_def(), info.get_parent_type()
            if field is not None and parent is not None and field.deprecation_reason is not None:
                deprecated.add(f"{parent.name}.{node.name.value}")

    visit(document, TypeInfoVisitor(info, Finder()))
    return ", ".join(sorted(deprecated))
