"""The generated pages of the reference equal what the code declares; the others stay short."""

import pytest

from gateway.cli.command_line import COMMANDS
from gateway.domain.catalogue import EVENTS
from gateway.records.errors import CODES
from gateway.rest.document.deliveries import WHEN
from tests.architecture.tree import ROOT
from tests.docs import commands_page, errors_page
from tests.docs.length import MOST, written
from tests.docs.pages import generated, names
from tests.docs.reference import PAGES, text


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_up_to_date(page: str) -> None:
    found = (ROOT / f"docs/reference/{page}.md").read_text("utf-8")
    assert found == text(page), "run: python -m tests.docs.reference"


def test_no_other_page_is_marked_as_generated() -> None:
    marked = [name for name in names() if generated(name)]
    assert marked == [f"docs/reference/{page}.md" for page in PAGES]


def test_the_pages_that_people_write_stay_short() -> None:
    pages = written()
    english = {name for name in names() if not name.startswith("docs/pt/")}
    assert pages.keys() == english - {f"docs/reference/{page}.md" for page in PAGES}
    assert sum(pages.values()) <= MOST, "python -m tests.docs.length"


def test_every_error_has_a_fix_and_none_is_left_over() -> None:
    assert errors_page.FIXES.keys() == set(CODES)


def test_no_cause_is_left_over() -> None:
    assert WHEN.keys() <= EVENTS.keys()


def test_each_link_of_the_page_of_commands_belongs_to_one() -> None:
    words = {command.words for command in COMMANDS}
    assert commands_page.MORE.keys() - words == set()
