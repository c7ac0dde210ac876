"""Fills in a form of a rendered page with what was typed into it before.

It knows no page: it walks the HTML of ours and changes the inputs of the form that is sent to an
address. What has no input there, as the further rows of a list, gets a line at the end of the form.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from html.parser import HTMLParser

TOKEN = "csrf_token"  # noqa: S105 - the name of a field
UNTYPED = ("submit", "button", "image", "reset", "file", "password")


def refilled(page: str, path: str, fields: Sequence[tuple[str, str]]) -> str | None:
    """Return a page with the fields in its form for `path`; None when it has no such form."""
    finder = _Finder(path)
    finder.feed(page)
    if finder.found is None:
        return None
    filler = _Filler(finder.found, fields)
    filler.feed(page)
    filler.close()
    return "".join(filler.parts)


class _Finder(HTMLParser):
    """Finds the first form that is sent to an address, by itself or by one of its buttons."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._number = -1
        self.found: int | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self._number += tag == "form"
        goes = named.get("action") if tag == "form" else named.get("formaction")
        posts = tag != "form" or (named.get("method") or "").lower() == "post"
        if self.found is None and goes == self._path and posts:
            self.found = self._number


class _Filler(HTMLParser):
    """Repeats a page, with other values in one of its forms."""

    def __init__(self, number: int, fields: Sequence[tuple[str, str]]) -> None:
        super().__init__(convert_charrefs=False)
        self._wanted = number
        self._number = -1
        self._typed: dict[str, list[str]] = {}
        for name, value in fields:
            self._typed.setdefault(name, []).append(value)
        self._left = {name: list(values) for name, values in self._typed.items()}
        self._within = False
        self._select: str | None = None
        self._skipping = False
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raw = self.get_starttag_text() or ""
        if tag == "form":
            self._number += 1
            self._within = self._number == self._wanted
        named = dict(attrs)
        name = named.get("name") or ""
        if not self._within or name == TOKEN:
            self.parts.append(raw)
        elif tag == "details":
            # What was typed may be in it.
            self.parts.append(_tag(tag, attrs, "open", True))
        elif tag == "input":
            self.parts.append(self._input(raw, attrs, name, (named.get("type") or "text").lower()))
        elif tag == "select":
            self._select = name
            self.parts.append(raw)
        elif tag == "option" and self._select in self._typed:
            selected = named.get("value") in self._typed[self._select or ""]
            self._left.pop(self._select or "", None)
            self.parts.append(_tag(tag, attrs, "selected", selected))
        elif tag == "textarea" and name in self._left:
            # The first line feed after the tag belongs to the tag.
            self.parts.append(f"{raw}\n{escape(self._next(name))}")
            self._skipping = True
        else:
            self.parts.append(raw)

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._skipping = False
        elif tag == "select":
            self._select = None
        elif tag == "form" and self._within:
            self.parts.append(self._rest())
            self._within = False
        self.parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self.parts.append(data)

    def handle_entityref(self, name: str) -> None:
        self.handle_data(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.handle_data(f"&#{name};")

    def handle_decl(self, decl: str) -> None:
        self.parts.append(f"<!{decl}>")

    def _input(self, raw: str, attrs: list[tuple[str, str | None]], name: str, kind: str) -> str:
        if not name or kind in UNTYPED:
            return raw
        if kind in ("checkbox", "radio"):
            value = dict(attrs).get("value") or "on"
            typed = self._typed.get(name, ())
            self._left.pop(name, None)
            # Of a radio button one was chosen; without any the page's choice stands.
            if kind == "radio" and not typed:
                return raw
            return _tag("input", attrs, "checked", value in typed)
        if name not in self._left:
            return raw
        others = [(key, text) for key, text in attrs if key != "value"]
        return _tag("input", [*others, ("value", self._next(name))], "", True)

    def _next(self, name: str) -> str:
        values = self._left[name]
        value = values.pop(0)
        if not values:
            del self._left[name]
        return value

    def _rest(self) -> str:
        """Return lines for the rows that the page has no inputs for."""
        return "".join(
            f'<p class="field"><label>{escape(name)} '
            f'<input name="{escape(name)}" value="{escape(value)}" autocomplete="off"></label></p>'
            for name, values in self._left.items()
            for value in values
            if "[" in name and value
        )


def _tag(tag: str, attrs: Sequence[tuple[str, str | None]], flag: str, flagged: bool) -> str:
    kept = [(name, value) for name, value in attrs if name != flag]
    if flag and flagged:
        kept.append((flag, None))
    texts = (name if value is None else f'{name}="{escape(value)}"' for name, value in kept)
    return f"<{' '.join((tag, *texts))}>"
