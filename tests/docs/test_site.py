"""The site of the docs: it is built without a warning and takes nothing from other hosts."""

import re
import shutil
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
    assert (made / "search" / "search_index.json").is_file()


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
