"""Documents that are written to keep a GraphQL server busy, each with its variables."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

H = '(hostname: "shop.example")'
TYPENAME = "{ __typename }"
ESCAPE = "\\n"


@dataclass(frozen=True, slots=True)
class Abuse:
    """An abusive request."""

    name: str
    query: str
    variables: dict[str, Any] = field(default_factory=dict)
    code: str = "QUERY_TOO_COMPLEX"
    """The code of the first error; empty when it must be answered."""


def _nested(levels: int, name: str = "a") -> str:
    return f"{{ {name} " * levels + "b" + "}" * levels


def _doubling(count: int, body: str = "__typename") -> str:
    fragments = [f"fragment F{n} on Query {{ ...F{n + 1} ...F{n + 1} }}" for n in range(count)]
    return " ".join([f"{{ ...F0 }} fragment F{count} on Query {{ {body} }}", *fragments])


def _branching(count: int) -> str:
    """Each fragment spreads the next one below two names, so its paths double at each level."""
    fragments = [
        f"fragment F{n} on Store {{ a: x {{ ...F{n + 1} }} b: x {{ ...F{n + 1} }} }}"
        for n in range(count)
    ]
    last = f"fragment F{count} on Store {{ id }}"
    return " ".join([f"{{ store{H} {{ ...F0 }} }}", *fragments, last])


def _merging(count: int) -> str:
    """Fields of one name in selection sets that merge below fields of one name."""
    return f"{{ {' '.join(f'store{H} {{ id id id id id id id }}' for _ in range(count))} }}"


def abuses() -> Iterator[Abuse]:
    """Yield every abusive request."""
    yield Abuse("2,000 levels", _nested(2_000))
    yield Abuse("16 levels", _nested(16))
    yield Abuse("59 levels", _nested(59))
    yield Abuse("400 levels of inline fragments", "{ ... " * 400 + "{ id }" + "}" * 400)
    yield Abuse("3,000 fields of one name", f"{{ {'__typename ' * 3_000}}}")
    yield Abuse("900 fields of one name", f"{{ {'__typename ' * 900}}}")
    yield Abuse("101 fields of one name", f"{{ {'__typename ' * 101}}}")
    yield Abuse("100 fields of one name", f"{{ {'__typename ' * 100}}}", code="")
    yield Abuse("99 merging sets", _merging(99))
    yield Abuse("60 merging sets", _merging(60))
    yield Abuse("31 aliases", f"{{ {' '.join(f'a{n}: __typename' for n in range(31))} }}")
    yield Abuse("300 aliases", f"{{ {' '.join(f'a{n}: __typename' for n in range(300))} }}")
    yield Abuse("20 doubling fragments", _doubling(20))
    yield Abuse("100 doubling fragments", _doubling(100))
    yield Abuse("20 doubling fragments with an alias", _doubling(20, "a: __typename"))
    yield Abuse("14 branching fragments", _branching(14))
    yield Abuse("30 branching fragments", _branching(30))
    yield Abuse(
        "a fragment of itself", "{ ...A } fragment A on Query { ...A }", code="BAD_USER_INPUT"
    )
    yield Abuse(
        "a circle of fragments",
        "{ ...A } fragment A on Query { ...B } fragment B on Query { ...C }"
        " fragment C on Query { ...A ...B ...C }",
        code="BAD_USER_INPUT",
    )
    yield Abuse(
        "40 fragments in a chain",
        " ".join(
            [TYPENAME.replace("__typename", "...F0")]
            + [f"fragment F{n} on Query {{ ...F{n + 1} }}" for n in range(39)]
            + ["fragment F39 on Query { __typename }"]
        ),
        code="",
    )
    yield Abuse(
        "fragments that all spread all others",
        "{ ...F0 } " + " ".join(
            f"fragment F{n} on Query {{ {' '.join(f'...F{m}' for m in range(n + 1, 20))} id }}"
            for n in range(20)
        ),
    )  # fmt: skip
    chain = " ".join(f"fragment F{n} on Query {{ ...F{n + 1} }}" for n in range(60))
    yield Abuse("60 fragments", f"{{ ...F0 }} {chain} fragment F60 on Query {TYPENAME}")
    yield Abuse("150 operations", " ".join(f"query Q{n} {TYPENAME}" for n in range(150)))
    yield Abuse(
        "100 operations that share a fragment",
        " ".join(f"query Q{n} {{ ...F }}" for n in range(100))
        + f" fragment F on Query {{ {'a ' * 90} }}",
    )
    yield Abuse(
        "3 operations that share 40 fragments",
        " ".join(f"query Q{n} {{ ...F0 }}" for n in range(3))
        + " ".join(f" fragment F{n} on Query {{ x{n} ...F{n + 1} }}" for n in range(39))
        + " fragment F39 on Query { __typename }",
        code="BAD_USER_INPUT",
    )
    yield Abuse("51 directives", f"{{ __typename {'@skip(if: false) ' * 51}}}")
    yield Abuse("190 unknown directives", f"{{ __typename {'@a ' * 190}}}")
    yield Abuse(
        "6 mutations",
        "mutation { "
        + " ".join(f"m{n}: shoppingCartClear(input: {{}}) {{ clientMutationId }}" for n in range(6))
        + " }",
    )
    products = "products(hostname: $h, first: {}) {{ nodes {{ {} }} }}"
    inner = "reviews(first: 100) { nodes { id } }"
    yield Abuse("a list of lists", "query ($h: String!) { " + products.format(100, inner) + " }")
    yield Abuse(
        "a list of lists by variables",
        "query ($h: String! $n: Int) { " + products.format("$n", inner.replace("100", "$n")) + " }",
        {"h": "shop.example", "n": 100},
    )
    yield Abuse(
        "a list of lists in a fragment",
        "query ($h: String!) { " + products.format(100, "...R") + " } fragment R on Product { "
        + inner + " }",
    )  # fmt: skip
    yield Abuse(
        "60 pages by default",
        "query ($h: String!) { "
        + " ".join(
            "products(hostname: $h) { nodes { reviews { nodes { id } } } }" for _ in range(60)
        )
        + " }",
    )
    yield Abuse("a huge page", "query ($h: String!) { " + products.format(9 * 10**18, "id") + " }")
    yield Abuse(
        "a page of 5,000 digits",
        "query ($h: String!) { " + products.format("9" * 5_000, "id") + " }",
    )
    yield Abuse(
        "9,000 nodes", "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", {"ids": ["a"] * 9_000}
    )
    wide = " ".join(f"f{n}: title" for n in range(28))
    yield Abuse("wide objects", "query ($h: String!) { " + products.format(2_000, wide) + " }")
    yield Abuse("a string of a megabyte", f'{{ store(hostname: "{"a" * 1_000_000}") {{ id }} }}')
    yield Abuse(
        "a string of 9,000 characters", f'{{ store(hostname: "{"a" * 9_000}") {{ id }} }}',
        code="STORE_NOT_FOUND",
    )  # fmt: skip
    yield Abuse(
        "escapes of 9,000 characters", f'{{ store(hostname: "{ESCAPE * 4_500}") {{ id }} }}',
        code="STORE_NOT_FOUND",
    )  # fmt: skip
    for lines in (9_000, 30_000):
        block = f'"""{chr(10) * lines}"""'
        code = "STORE_NOT_FOUND" if lines == 9_000 else "QUERY_TOO_COMPLEX"
        yield Abuse(
            f"a block string of {lines} lines",
            f"{{ store(hostname: {block}) {{ id }} }}",
            code=code,
        )
    yield Abuse("a megabyte of commas", "{ __typename " + "," * 1_000_000 + "}")
    yield Abuse("30,000 commas", "{ __typename " + "," * 30_000 + "}", code="")
    yield Abuse("15,000 comments", "{ __typename " + "#\n" * 15_000 + "}")
    yield Abuse("an open string", '{ a(b: "' + "\\" * 30_000)
    yield Abuse("an open block string", '{ a(b: """' + '\\"""' * 7_000)
    yield Abuse("quotes", '"' * 30_001)
    yield Abuse("a name of 30,000 characters", f"{{ {'a' * 30_000} }}", code="BAD_USER_INPUT")
    yield Abuse("a list of 480 values", f"{{ store(hostname: [{'1 ' * 480}]) {{ id }} }}",
                code="BAD_USER_INPUT")  # fmt: skip
    yield Abuse("a list of 900 values", f"{{ store(hostname: [{'1 ' * 900}]) {{ id }} }}")
    yield Abuse("lists 100 deep", f"{{ store(hostname: {'[' * 100}{']' * 100}) {{ id }} }}")
    yield Abuse("a type 100 deep", f"query ($a: {'[' * 100}Int{']' * 100}) {TYPENAME}")
    yield Abuse("objects 100 deep", f"{{ store(hostname: {'{a:' * 100}1{'}' * 100}) {{ id }} }}")
    yield Abuse(
        "120 variables", f"query ({' '.join(f'$v{n}: Int' for n in range(120))}) {TYPENAME}",
        code="BAD_USER_INPUT",
    )  # fmt: skip
    yield Abuse("9,000 unused variables", TYPENAME, {f"v{n}": n for n in range(9_000)}, code="")
    yield Abuse(
        "a variable of 900 kB", "query ($h: String!) { store(hostname: $h) { id } }",
        {"h": "a" * 900_000}, code="STORE_NOT_FOUND",
    )  # fmt: skip
    deep: Any = []
    for _ in range(55):
        deep = [deep]
    yield Abuse("a variable 55 deep", "query ($h: String!) { store(hostname: $h) { id } }",
                {"h": deep}, code="BAD_USER_INPUT")  # fmt: skip
    yield Abuse("a variable of 9,000 values", "query ($h: String!) { store(hostname: $h) { id } }",
                {"h": [1] * 9_000}, code="BAD_USER_INPUT")  # fmt: skip
    schema = "__schema { types { name fields { name args { name } } } }"
    yield Abuse("the schema 30 times", f"{{ {' '.join(f's{n}: {schema}' for n in range(30))} }}")
    yield Abuse(
        "a circle of the schema",
        "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }",
        code="BAD_USER_INPUT",
    )
    yield Abuse("300 undefined fragments", f"{{ {'...A ' * 300}}}")
    yield Abuse("unknown fields", f"{{ {' '.join(f'f{n}' for n in range(99))} }}",
                code="BAD_USER_INPUT")  # fmt: skip
    yield Abuse("no document", "", code="BAD_USER_INPUT")
