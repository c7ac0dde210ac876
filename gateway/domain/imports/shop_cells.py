"""Reads the cells of shops' product lists: prices, stock, images, categories, HTML."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import unescape
from typing import Any

from msgspec import DecodeError
from msgspec.json import decode

from gateway.domain.imports import headings
from gateway.records.values.folding import fold

# A comma may stand in a URL, and words that are no URL are one fault. Each pattern looks once at a
# run of blanks, commas or tags, however long it is.
_URLS = re.compile(r"(?<![\s|;,])[\s|;,]++(?=https?://)|(?<![\s|])\s*+\|[\s|]*+")
_HTML = re.compile(r"<(?:/?[a-z][a-z0-9]*(?:\s[^<>]*)?/?|!--)>?", re.I)
# Python's own parser takes the square of the length for tags and comments that nothing closes.
_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?:script|style)\b.*?(?:</(?:script|style)\b[^<>]*+>?|\Z)|<[!?][^<>]*+>?|<(?P<end>/?)(?P<tag>[a-z][^\s/<>]*+)"
    r"""(?:=\s*+(?:"[^"]*"|'[^']*')|[^<>])*+(?P<close>>?)""",
    re.I | re.S,
)
# Python refuses to read so many digits as a number.
_NO_CHARACTER = re.compile("&#[0-9]{12,};?")
_PATH = re.compile(r">|(?<!\s)\s++/(?=\s)")
_COMMAS = re.compile(r"(?<!\\),|;|\|")
MOST_IMAGES = 50
"""Images of a product."""
_ZERO = re.compile(r"[0.,\s]*")
_BREAKING = frozenset(
    ("article", "blockquote", "br", "dd", "div", "dl", "dt", "footer", "h1", "h2", "h3", "h4", "h5",
     "h6", "header", "hr", "li", "ol", "p", "pre", "section", "table", "tr", "ul")
)  # fmt: skip
_UNSEEN = frozenset(("script", "style", "head", "title"))
_NO_SHIPPING = ("virtual", "downloadable", "service", "serviço", "digital")


def complete(
    cells: dict[str, str], values: dict[str, Any], by_target: Mapping[str, Sequence[str]]
) -> None:
    """Complete a product by the columns that are parts of its fields."""
    _price(cells, by_target)
    _stock(cells, by_target)
    _images(values, by_target)
    kind = fold(_first(by_target, "kind"))
    if any(fold(word) in kind for word in _NO_SHIPPING):
        cells.setdefault("requiresShipping", "false")
    options = [
        option
        for cell in by_target.get("option", ())
        if fold(option := cell.strip()) not in headings.nothing("option")
    ]
    if options and (name := _first(by_target, "name")):
        del cells["name"]
        values["name"] = f"{name.strip()} - {' / '.join(options)}"


def _price(cells: dict[str, str], found: Mapping[str, Sequence[str]]) -> None:
    """Take the reduced price, and the usual one as the price before the reduction."""
    sale = _first(found, "salePrice")
    if not sale or _ZERO.fullmatch(sale):
        return
    if "price" in cells:
        cells.setdefault("compareAtPrice", cells["price"])
    cells["price"] = sale


def _stock(cells: dict[str, str], by_target: Mapping[str, Sequence[str]]) -> None:
    """Leave out a stock that nobody counts; a product that is sold out or oversold has none."""
    if "stockTracker" in by_target and not _first(by_target, "stockTracker").strip():
        cells.pop("stock", None)
    stock = cells.get("stock", "").strip()
    if stock.startswith("-") and stock[1:].isdigit():
        cells["stock"] = "0"
    elif fold(stock) in headings.nothing("stock"):
        del cells["stock"]
    if "stock" not in cells and (there := _first(by_target, "inStock")):
        word = headings.words("inStock").get(fold(there), there.strip().lower())
        if word in ("0", "false", "no", "não"):
            cells["stock"] = "0"


def _images(values: dict[str, Any], found: Mapping[str, Sequence[str]]) -> None:
    """Put the image of the variant first, and name the image of the line."""
    if "images" in found and "images" in values and (alt := _first(found, "imageAlt")):
        for image in values["images"][:1]:
            image.setdefault("alt", alt)
    own = images(found.get("variantImage", ()))
    if own:
        others = [one for one in values.get("images", ()) if one["url"] != own[0]["url"]]
        values["images"] = [*own, *others]


def images(cells: Iterable[str]) -> list[dict[str, str]]:
    """Return the images of cells with one URL or several."""
    urls = (url for cell in cells for url in _URLS.split(cell.strip()))
    return [{"url": url} for url in dict.fromkeys(one.strip(",; ") for one in urls) if url]


def listed_images(cell: str) -> list[dict[str, str]]:
    """Return the images of a cell in JSON; none when it is something else."""
    try:
        return decode(cell, type=list[dict[str, str]])
    except DecodeError:
        return []


def is_path(cell: str) -> bool:
    """Return whether a cell has categories below others."""
    return ">" in cell or " / " in cell


def paths(cell: str) -> list[str]:
    """Return all categories of `Clothing > Shirts, Sale`, those above others too."""
    return [
        name
        for path in _COMMAS.split(cell)
        for part in _PATH.split(path)
        if (name := part.replace(r"\,", ",").strip())
    ]


def text_of(cell: str) -> str:
    """Return the text of a description, which shops write as HTML."""
    if _HTML.search(cell) is None:
        return cell
    html = cell.replace("\\n", "\n") if "\n" not in cell else cell
    parts, unseen, place = list[str](), 0, 0
    for token in _TOKEN.finditer(html):
        parts += [] if unseen else [_data(html[place : token.start()])]
        place = token.end()
        tag = (token["tag"] or "").lower()
        if tag and not token["close"]:
            # Not a tag, such as a comparison.
            place = token.start()
        elif tag in _UNSEEN:
            unseen = max(0, unseen - 1) if token["end"] else unseen + 1
        elif tag in _BREAKING and (tag == "p" or not token["end"]):
            parts.append("\x00- " if tag == "li" else "\x00")
    parts += [] if unseen else [_data(html[place:])]
    lines = (" ".join(line.split()) for line in "".join(parts).split("\x00"))
    return re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip()


def _data(text: str) -> str:
    return unescape(_NO_CHARACTER.sub("\ufffd", text))


def _first(found: Mapping[str, Sequence[str]], target: str) -> str:
    return next(iter(found.get(target, ())), "")
