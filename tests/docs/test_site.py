"""The site of the docs: it is built without a warning and takes nothing from other hosts."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.docs.pages import names
from tests.support.requirements import need

pytestmark = pytest.mark.proof
# What a browser loads by itself; a link is followed by a person.
LOADED = re.compile(
    r"""<(?:script|img|source|iframe)[^>]*\ssrc(?:set)?=["']?(https?:)?//|"""
    r"""<link[^>]*rel=["']?(?:stylesheet|preconnect|preload|icon)[^>]*href=["']?(https?:)?//|"""
    r"""@import\s+(?:url\()?["']?(https?:)?//"""
)

SEARCHED = {
    "pagination": "reference/rest-api", "rate limit": "reference/rest-api",
    "idempotency": "reference/rest-api", "order.created": "reference/events",
    "SDK": "examples/index", "openapi client": "examples/index",
    "signature": "how-to/verify-signatures", "helm": "how-to/deploy", "backup": "how-to/back-up",
    "MySQL": "explanation/what-it-does-not-do", "currencies": "explanation/what-it-does-not-do",
    "multi-currency": "explanation/what-it-does-not-do", "SSO": "explanation/what-it-does-not-do",
    "teams": "explanation/what-it-does-not-do", "subpath": "explanation/what-it-does-not-do",
}  # fmt: skip
"""Words that people search for, and the page that the first results have to include."""


def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    need("material")
    from tests.docs.site import make

    made = tmp_path / "site"
    make(tmp_path / "pages", made)
    for page in names():
        html = Path(page).with_suffix(".html")
        place = made / (html.with_name("index.html") if html.stem == "README" else html)
        assert place.is_file(), page
    loading = [
        path.relative_to(made)
        for path in made.rglob("*")
        if path.suffix in {".html", ".css"} and LOADED.search(path.read_text("utf-8"))
    ]
    assert loading == []
    program = Path(__file__).with_name("search.mjs")
    words = (need("node"), str(program), str(made), *SEARCHED)
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=100)
    found = {one["word"]: one["pages"][:5] for one in map(json.loads, done.stdout.splitlines())}
    missed = [word for word, page in SEARCHED.items() if f"docs/{page}.html" not in found[word]]
    assert missed == [], found


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path) -> None:
    need("material")
    from mkdocs.commands.build import build
    from mkdocs.exceptions import Abort

    from tests.docs.site import config

    pages = tmp_path / "pages"
    (pages / "docs").mkdir(parents=True)
    shutil.copyfile(ROOT / "LICENSE", pages / "CHANGELOG.md")
    page = pages / "README.md"
    (pages / "site.css").touch()
    page.write_text("# Home\n\n[Changes](CHANGELOG.md)\n")
    build(config(pages, tmp_path / "site"))
    for link in ("CHANGELOG.md#never", "never.md"):
        page.write_text(f"# Home\n\n[Changes]({link})\n")
        with pytest.raises(Abort):
            build(config(pages, tmp_path / "site"))
