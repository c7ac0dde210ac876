"""Counts the lines of the docs that people write: README.md and docs/, without generated pages.

Translations are left out: a test holds them to the structure of their English pages.

`python -m tests.docs.length` prints them, the longest page first.
"""

from collections.abc import Mapping

from tests.docs.pages import generated, names, text_of

MOST = 4_990
"""Lines of all pages together."""


def written() -> Mapping[str, int]:
    """Return the lines of each page that people write."""
    return {
        name: text_of(name).count("\n")
        for name in names()
        if not generated(name) and "/pt/" not in name
    }


if __name__ == "__main__":
    for name, lines in sorted(written().items(), key=lambda one: -one[1]):
        print(f"{lines:5} {name}")
    print(f"{sum(written().values()):5} of {MOST}")
