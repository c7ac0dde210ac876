"""Every operation of the storefront has an example for its page, and each is valid."""

import json

from graphql import parse, validate

from gateway.graphql.schema import schema
from tests.docs.operations_page import missing
from tests.support.operations import FOLDER


def test_every_operation_has_an_example() -> None:
    assert missing() == []


def test_every_example_is_valid() -> None:
    for path in FOLDER.glob("*.graphql"):
        assert validate(schema(), parse(path.read_text("utf-8"))) == [], path.name
        assert isinstance(json.loads(path.with_suffix(".json").read_text("utf-8")), dict)
