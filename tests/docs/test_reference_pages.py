"""The generated pages of the reference equal what the code declares; the others stay short."""

import json

import pytest
from graphql import parse, validate

from gateway.cli.command_line import COMMANDS
from gateway.domain.catalogue import EVENTS
from gateway.graphql.schema import schema
from gateway.records.errors import CODES
from gateway.rest.document.webhook_entries import OPERATIONAL_DATA, WHEN
from gateway.server.upkeep.web_duties import BATCHES
from tests.architecture.tree import ROOT
from tests.docs import commands_page, costs_page, errors_page, operations_page
from tests.docs.pages import generated, names, text_of
from tests.docs.reference import PAGES, text
from tests.support.operations import FOLDER

MOST = 4_990
"""Lines of all pages that people write, without translations, which follow the English pages."""


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_up_to_date(page: str) -> None:
    found = (ROOT / f"docs/reference/{page}.md").read_text("utf-8")
    assert found == text(page), "run: python -m tests.docs.reference"


def test_the_pages_that_people_write_stay_short() -> None:
    assert [name for name in names() if generated(name)] == [
        f"docs/reference/{page}.md" for page in PAGES
    ]
    written = {
        name: text_of(name).count("\n")
        for name in names()
        if not generated(name) and "/pt/" not in name
    }
    assert sum(written.values()) <= MOST, sorted(written.items(), key=lambda one: -one[1])


def test_every_part_of_a_generated_page_belongs_to_something_of_the_code() -> None:
    assert errors_page.FIXES.keys() == set(CODES)
    assert WHEN.keys() <= EVENTS.keys() | OPERATIONAL_DATA.keys()
    assert commands_page.MORE.keys() <= {command.words for command in COMMANDS}


def test_every_route_page_and_job_has_a_line_that_says_what_it_may_cost() -> None:
    kinds, jobs = costs_page.table()["kinds"], costs_page.table()["jobs"]
    listed = [route for kind in kinds.values() for route in kind["routes"]]
    assert len(listed) == len(set(listed))
    # A new route gets a line in costs.toml, one that is gone loses it.
    assert set(listed) ^ costs_page.routes() == set()
    in_batches = {batches.name for batches in BATCHES}
    assert jobs.keys() | in_batches == costs_page.duty_names()
    assert not jobs.keys() & in_batches
    costs = ("rows", "bytes", "place", "milliseconds", "bound")
    assert [one for one in (*kinds.values(), *jobs.values()) if not all(map(one.get, costs))] == []


def test_every_operation_of_the_storefront_has_a_valid_example() -> None:
    assert operations_page.missing() == []
    for path in FOLDER.glob("*.graphql"):
        assert validate(schema(), parse(path.read_text("utf-8"))) == [], path.name
        assert isinstance(json.loads(path.with_suffix(".json").read_text("utf-8")), dict)
