"""The generated pages of the reference equal what the code declares."""

from collections.abc import Callable, Iterator

import pytest

from gateway.records.errors import CODES
from tests.architecture.tree import ROOT
from tests.docs import errors_page, options_page


@pytest.mark.parametrize(
    ("page", "lines"), [("options", options_page.lines), ("errors", errors_page.lines)]
)
def test_the_page_is_up_to_date(page: str, lines: Callable[[], Iterator[str]]) -> None:
    text = (ROOT / f"docs/reference/{page}.md").read_text("utf-8")
    command = f"python -m tests.docs.{page}_page > docs/reference/{page}.md"
    assert text == "\n".join(lines()).rstrip() + "\n", f"run {command}"


def test_every_error_has_a_fix_and_none_is_left_over() -> None:
    assert errors_page.FIXES.keys() == set(CODES)
