"""The page docs/reference/storefront.md names every release and limit of the endpoint."""

import re

from gateway.graphql import costs, document_limits
from gateway.graphql.execution import SECONDS
from gateway.graphql.request_checks import RELEASES
from tests.architecture.tree import ROOT

PAGE = (ROOT / "docs/reference/storefront.md").read_text("utf-8")


def test_every_release_is_documented() -> None:
    assert re.findall(r"^\| `(\d{4}-\d\d-\d\d)` \|", PAGE, re.MULTILINE) == list(RELEASES)


def test_the_limits_are_those_of_the_program() -> None:
    section = PAGE.partition("\n## Limits\n")[2].partition("\n## ")[0].replace(",", "")
    numbers = {int(number) for number in re.findall(r"\d+", section)}
    assert {
        document_limits.CHARACTERS, document_limits.TOKENS, document_limits.BRACKETS,
        document_limits.ARGUMENTS, document_limits.TEXT,
        document_limits.DEPTH, document_limits.ALIASES, document_limits.DIRECTIVES,
        document_limits.FIELDS, document_limits.FRAGMENTS,
        document_limits.OPERATIONS, document_limits.SHARED, document_limits.MUTATIONS,
        costs.COST, costs.VALUES,
        int(SECONDS),
    } - numbers == set()  # fmt: skip
