"""Builds the site of the docs into build/docs, without the network.

`python -m tests.docs.site` is `make docs`. README.md is its first page. The pages keep their paths,
so their links lead to the same places here and in the repository.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.commands.build import build
from mkdocs.config import load_config

from tests.architecture.tree import ROOT

CONFIG = Path(__file__).with_suffix(".yml")
STYLE = CONFIG.with_suffix(".css")
OUTPUT = ROOT / "build" / "docs"
PARTS = {
    "tutorials": "Tutorials",
    "how-to": "How-to guides",
    "reference": "Reference",
    "explanation": "Explanation",
    "": "More",
    "examples": "Examples",
    "pt": "Português",
}
"""The title of each folder of docs/, in the order of the navigation."""
LINK = re.compile(r"\]\(((?:\.\./)*[\w][^)\s#]*)")
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def gather(folder: Path) -> None:
    """Copy the pages, and the files outside docs/ that they link, to a folder."""
    hidden = shutil.ignore_patterns(".*", "node_modules", "__pycache__")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=hidden)
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for link in LINK.findall(page.read_text("utf-8")):
            linked = (page.parent / link).resolve()
            if linked.is_file() and linked.is_relative_to(ROOT):
                copy = folder / linked.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(linked, copy)
    shutil.copyfile(ROOT / "README.md", folder / "README.md")
    shutil.copyfile(STYLE, folder / STYLE.name)


def navigation(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the parts of the navigation: the pages of each folder by their titles."""
    yield {"Carteiro": "README.md"}
    docs = folder / "docs"
    pages: dict[str, list[dict[str, str]]] = {part: [] for part in PARTS}
    for page in sorted(docs.rglob("*.md")):
        inside = page.relative_to(docs)
        part = inside.parts[0] if len(inside.parts) > 1 else ""
        title = TITLE.search(page.read_text("utf-8"))
        entry = {title[1] if title else page.stem: page.relative_to(folder).as_posix()}
        if part == "" and page.stem == "index":
            yield entry
        else:
            pages.setdefault(part, []).append(entry)
    for part, entries in pages.items():
        if entries:
            yield {PARTS.get(part, part): entries}
    yield {"Changelog": "CHANGELOG.md"}


def config(folder: Path, output: Path) -> Any:
    """Return the configuration of the site whose pages are in a folder."""
    return load_config(
        str(CONFIG), docs_dir=str(folder), site_dir=str(output), nav=list(navigation(folder)),
        markdown_extensions=[
            "tables", "attr_list", "md_in_html", "sane_lists", "pymdownx.superfences",
            "pymdownx.highlight", {"toc": {"permalink": True, "slugify": slug}},
        ],
    )  # fmt: skip


def slug(heading: str, separator: str) -> str:
    """Return the anchor of a heading as repositories make it; pages link to these."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def make(folder: Path, output: Path = OUTPUT) -> None:
    """Build the site; a warning is an error. `folder` is for the gathered pages."""
    gather(folder)
    shutil.rmtree(output, ignore_errors=True)
    build(config(folder, output))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        make(Path(name))
    print("python3 -m http.server --directory build/docs serves it; a file has no search")
