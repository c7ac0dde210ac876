"""The page of the storefront's operations equals the schema and the tested documents."""

import json

from graphql import parse, validate

from gateway.graphql.schema import schema
from tests.architecture.tree import ROOT
from tests.docs.operations_page import lines, missing
from tests.support.operations import FOLDER


def test_every_operation_has_an_example() -> None:
    assert missing() == []


def test_every_example_is_valid() -> None:
    for path in FOLDER.glob("*.graphql"):
        assert validate(schema(), parse(path.read_text("utf-8"))) == [], path.name
        assert isinstance(json.loads(path.with_suffix(".json").read_text("utf-8")), dict)


def test_the_page_is_up_to_date() -> None:
    text = (ROOT / "docs/reference/storefront-operations.md").read_text("utf-8")
    command = "python -m tests.docs.operations_page > docs/reference/storefront-operations.md"
    assert text == "\n".join(lines()).rstrip() + "\n", f"run {command}"
