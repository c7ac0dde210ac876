"""Each limit of a document holds exactly, and refuses before anything is validated."""

import time
from types import ModuleType
from typing import Any

import pytest
from graphql import get_introspection_query

from gateway.graphql import costs, document_size, limits
from gateway.graphql.costs import COST
from gateway.graphql.document_size import ARGUMENTS, BRACKETS, CHARACTERS, TEXT, TOKENS
from gateway.graphql.documents import Documents, Invalid
from gateway.graphql.errors import render
from gateway.graphql.limits import (
    ALIASES,
    DEPTH,
    DIRECTIVES,
    FIELDS,
    FRAGMENTS,
    MUTATIONS,
    OPERATIONS,
)
from gateway.graphql.schema import schema
from tests.support.abusive import abuses
from tests.support.shop import Answer, Shop

TRIES = 5


def refused(text: str, variables: dict[str, Any] | None = None) -> str:
    """Return the code and the outcome of a refused document; empty when it passes its limits."""
    try:
        Documents(schema()).read(text, variables)
    except Invalid as invalid:
        code = render(invalid.errors[0], "r")["extensions"]["code"]
        return f"{code} {invalid.outcome}" if code == "QUERY_TOO_COMPLEX" else ""
    return ""


def chain(levels: int) -> str:
    """A valid query of this depth; `parent` goes on without end."""
    inner = "id"
    for _ in range(levels - 2):
        inner = f"parent {{ {inner} }}"
    return f'{{ categories(hostname: "a") {{ {inner} }} }}'


def fragments(operations: int, count: int) -> str:
    """Operations and a chain of fragments."""
    chain = [f"fragment F{n} on Query {{ ...F{n + 1} }}" for n in range(count - 1)]
    end = f"fragment F{count - 1} on Query {{ __typename }}"
    return " ".join([*(f"query Q{n} {{ ...F0 }}" for n in range(operations)), *chain, end])


PRODUCTS = 'query ($n: Int = {}) {{ products(hostname: "a", first: $n) {{ nodes {{ {} }} }} }}'
CASES: dict[str, tuple[str, str, str]] = {
    "tokens": (
        "{ " + "__typename " * 90 + "} " + "# comment\n" * (TOKENS - 92),
        "{ " + "__typename " * 90 + "} " + "# comment\n" * (TOKENS - 91),
        "rejected_tokens",
    ),
    "characters": (
        "{ __typename " + " " * (CHARACTERS - 14) + "}",
        "{ __typename " + " " * (CHARACTERS - 13) + "}",
        "rejected_tokens",
    ),
    "arguments": (
        f"{{ nodes(ids: [{'1 ' * (ARGUMENTS - 6)}]) {{ id }} }}",
        f"{{ nodes(ids: [{'1 ' * (ARGUMENTS - 2)}]) {{ id }} }}",
        "rejected_tokens",
    ),
    "strings": (
        f'{{ store(hostname: "{"a" * (TEXT - 2)}") {{ id }} }}',
        f'{{ store(hostname: "{"a" * (TEXT - 1)}") {{ id }} }}',
        "rejected_tokens",
    ),
    "brackets": (
        "{ ... " * (BRACKETS - 1) + "{ __typename }" + "}" * (BRACKETS - 1),
        "{ ... " * BRACKETS + "{ __typename }" + "}" * BRACKETS,
        "rejected_depth",
    ),
    "depth": (chain(DEPTH), chain(DEPTH + 1), "rejected_depth"),
    "depth through fragments": (
        f"{{ ...F }} fragment F on Query {chain(DEPTH)}",
        f"{{ ...F }} fragment F on Query {chain(DEPTH + 1)}",
        "rejected_depth",
    ),
    "aliases": (
        f"{{ {' '.join(f'a{n}: __typename' for n in range(ALIASES))} }}",
        f"{{ {' '.join(f'a{n}: __typename' for n in range(ALIASES + 1))} }}",
        "rejected_cost",
    ),
    "aliases through fragments": (
        f"{{ {'...F ' * 10} }} fragment F on Query {{ a: __typename b: __typename c: __typename }}",
        f"{{ {'...F ' * 11} }} fragment F on Query {{ a: __typename b: __typename c: __typename }}",
        "rejected_cost",
    ),
    "fields": ("{" + " id" * FIELDS + "}", "{" + " id" * (FIELDS + 1) + "}", "rejected_cost"),
    "fields through fragments": (
        f"{{ {'...F ' * 10} }} fragment F on Query {{ {'id ' * 10} }}",
        f"{{ {'...F ' * 10} id }} fragment F on Query {{ {'id ' * 10} }}",
        "rejected_cost",
    ),
    "fields of one name": (
        f"{{ {'a { b b b b b b } ' * 15} }}", f"{{ {'a { b b b b b b } ' * 20} }}",
        "rejected_cost",
    ),
    "mutations": (
        f"mutation {{ {'a ' * MUTATIONS} }}", f"mutation {{ {'a ' * (MUTATIONS + 1)} }}",
        "rejected_cost",
    ),
    "directives": (
        f"{{ id {'@a ' * DIRECTIVES} }}", f"{{ id {'@a ' * (DIRECTIVES + 1)} }}", "rejected_cost",
    ),
    "operations": (
        " ".join(f"query Q{n} {{ id }}" for n in range(OPERATIONS)),
        " ".join(f"query Q{n} {{ id }}" for n in range(OPERATIONS + 1)),
        "rejected_cost",
    ),
    "fragments": (fragments(1, FRAGMENTS), fragments(1, FRAGMENTS + 1), "rejected_cost"),
    "operations with fragments": (fragments(3, 40), fragments(4, 40), "rejected_cost"),
    "cost": (PRODUCTS.format(COST, "id"), PRODUCTS.format(COST + 1, "id"), "rejected_cost"),
    "cost of lists of lists": (
        PRODUCTS.format(50, "reviews(first: 99) { totalCount }"),
        PRODUCTS.format(50, "reviews(first: 100) { totalCount }"),
        "rejected_cost",
    ),
    "cost by default": (
        PRODUCTS.format(200, "reviews { totalCount }"),
        PRODUCTS.format(240, "reviews { totalCount }"),
        "rejected_cost",
    ),
    "values": (
        PRODUCTS.format(1_000, "id title slug price stock sku currency available createdAt " * 2),
        PRODUCTS.format(1_100, "id title slug price stock sku currency available createdAt " * 2),
        "rejected_cost",
    ),
}  # fmt: skip


@pytest.mark.parametrize("limit", CASES)
def test_limit_holds_exactly(limit: str) -> None:
    within, beyond, outcome = CASES[limit]
    assert refused(within) == ""
    assert refused(beyond) == f"QUERY_TOO_COMPLEX {outcome}"


def test_variables_set_the_cost_of_a_kept_document() -> None:
    documents = Documents(schema())
    text = 'query ($n: Int!) { products(hostname: "a", first: $n) { nodes { id } } }'
    known = documents.read(text, {"n": 1})
    operation = known.operation(None)
    assert operation is not None
    assert known.weight(operation, {"n": 100}) == 1
    with pytest.raises(Exception, match="5000"):
        known.weight(operation, {"n": COST + 1})
    assert documents.read(text) is known


def test_full_introspection_passes() -> None:
    text = get_introspection_query(
        specified_by_url=True, directive_is_repeatable=True, input_value_deprecation=True
    )
    assert refused(text) == ""
    known = Documents(schema()).read(text)
    assert known.deprecated == ""


@pytest.mark.parametrize(
    "limit",
    [
        (document_size, "CHARACTERS"), (document_size, "ARGUMENTS"),
        (document_size, "TEXT"), (document_size, "BRACKETS"),
        (limits, "DEPTH"), (limits, "ALIASES"), (limits, "FIELDS"), (limits, "MUTATIONS"),
        (limits, "DIRECTIVES"), (limits, "OPERATIONS"), (limits, "FRAGMENTS"), (limits, "SHARED"),
        (limits, "PAIRS"), (costs, "COST"), (costs, "VALUES"),
    ],
)  # fmt: skip
def test_cases_tell_whether_a_limit_holds(
    monkeypatch: pytest.MonkeyPatch, limit: tuple[ModuleType, str]
) -> None:
    """Without the limit, some case above passes."""
    monkeypatch.setattr(*limit, 1 << 62)
    beyond = [text for _, text, _ in CASES.values()]
    assert "" in [refused(text) for text in beyond]


@pytest.mark.slow
def test_failed_documents_are_not_kept_and_kept_ones_are_bounded() -> None:
    documents = Documents(schema(), most=1_000)
    for n in range(200):
        with pytest.raises(Invalid):
            documents.read(f"{{ unknown{n} }}")
    assert len(documents) == 0
    for n in range(200):
        documents.read(f"query Q{n} {{ __typename }}")
    assert 20 < len(documents) < 50
    document = documents.read("query Q199 { __typename }")
    assert documents.read("query Q199 { __typename }") is document


@pytest.mark.proof
async def test_abusive_documents_cost_less_than_the_dearest_honest_one(shop: Shop) -> None:
    """`make proof` measures the milliseconds; here the bar is introspection in the same run."""
    browser = shop.browser()

    async def cost(text: str, variables: Any = None) -> tuple[float, Answer]:
        # Of this process, whatever else the machine does.
        began = time.process_time()
        answer = await browser.send(text, variables)
        return time.process_time() - began, answer

    honest = [await cost(get_introspection_query()) for _ in range(TRIES)]
    assert honest[0][1].data
    most = min(seconds for seconds, _ in honest)
    for abuse in abuses():
        fastest = 10.0
        for _ in range(TRIES):
            seconds, answer = await cost(abuse.query, abuse.variables)
            fastest = min(fastest, seconds)
            if fastest <= most:
                break
        errors = answer.body.get("errors")
        code = errors[0]["extensions"]["code"] if errors else ""
        assert (abuse.name, answer.status, code) == (abuse.name, 200, abuse.code)
        assert fastest <= most, (abuse.name, fastest, most)
