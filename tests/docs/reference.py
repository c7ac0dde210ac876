"""Writes the generated pages of docs/reference from what the code declares.

`python -m tests.docs.reference` writes all of them.
"""

from collections.abc import Callable, Iterator, Mapping

from tests.architecture.tree import ROOT
from tests.docs import (
    bodies_page,
    checks_page,
    commands_page,
    configuration_page,
    errors_page,
    operations_page,
    routes_page,
    series_page,
)

PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "bodies": bodies_page.lines,
    "checks": checks_page.lines,
    "commands": commands_page.lines,
    "configuration": configuration_page.lines,
    "errors": errors_page.lines,
    "routes": routes_page.lines,
    "series": series_page.lines,
    "storefront-operations": operations_page.lines,
}
MARK = "<!-- Generated: python -m tests.docs.reference -->\n"
"""The first line of each."""


def text(page: str) -> str:
    """Return the whole page."""
    return MARK + "\n".join(PAGES[page]()).rstrip() + "\n"


if __name__ == "__main__":
    for name in PAGES:
        (ROOT / f"docs/reference/{name}.md").write_text(text(name), "utf-8")
