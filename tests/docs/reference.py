"""Writes the generated parts of pages of docs/reference from what the code declares.

What stands before the mark of a page is written by people.

`python -m tests.docs.reference` writes all of them.
"""

from collections.abc import Callable, Iterator, Mapping

from tests.architecture.tree import ROOT
from tests.docs import (
    bodies_page,
    checks_page,
    commands_page,
    configuration_page,
    costs_page,
    errors_page,
    objects_page,
    operations_page,
    routes_page,
    series_page,
)

PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "bodies": bodies_page.lines,
    "checks": checks_page.lines,
    "commands": commands_page.lines,
    "configuration": configuration_page.lines,
    "costs": costs_page.lines,
    "errors": errors_page.lines,
    "objects": objects_page.lines,
    "routes": routes_page.lines,
    "series": series_page.lines,
    "storefront-operations": operations_page.lines,
}
MARK = "<!-- Generated: python -m tests.docs.reference -->\n"
"""The line before the generated part."""


def text(page: str) -> str:
    """Return the whole page."""
    head, mark, _ = (ROOT / f"docs/reference/{page}.md").read_text("utf-8").partition(MARK)
    return f"{head}{mark}\n" + "\n".join(PAGES[page]()).strip() + "\n"


if __name__ == "__main__":
    for name in PAGES:
        (ROOT / f"docs/reference/{name}.md").write_text(text(name), "utf-8")
