"""Finds texts outside the catalogues, and what two catalogues do not have in common."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from string import Formatter

import jinja2
from jinja2 import nodes

Forms = Mapping[str, Sequence[str]]

OF_DECLARATIONS = ("hint.", "fault.", "refused.", "command.", "told.")
"""Keys whose English text is the declaration's or the domain's: only other languages have them."""
SAID = ("title", "aria-label", "placeholder", "alt", "data-label")
"""Attributes that people read or hear."""
VERBATIM = ("code", "pre", "kbd", "script", "style")
"""Elements with what is the same in every language."""
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_ATTRIBUTE = re.compile(r'[\w-]+="[^"]*"')
"""A macro may write the attributes of an element."""
_HOLE = " \x00 "
_SENTENCE = re.compile(r"[A-Za-z]{2,},? [A-Za-z]+,? [a-z]+")
PLACE_OF_KEYS = {"Refusal": 1, "Fault": 2, "Wrong": 1}
"""Calls with a message that the reader gets by code, and the place of the message."""


class _Read(HTMLParser):
    """Collects the texts and the attributes of a page that hold letters."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in VERBATIM:
            self._inside.append(tag)
        self.found += [
            f"{name}={value}"
            for name, value in attrs
            if name in SAID and value and _LETTERS.search(value.replace(_HOLE, " "))
        ]

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            self._inside.remove(tag)

    def handle_data(self, data: str) -> None:
        data = _ATTRIBUTE.sub("", data)
        if not self._inside and _LETTERS.search(data.replace(_HOLE, " ")):
            self.found.append(re.sub(r"\s*\x00\s*", "…", data).strip())


def in_template(engine: jinja2.Environment, source: str) -> list[str]:
    """Return the texts of a template that stand in it, not in a catalogue."""
    parts: list[str] = []
    constants: list[str] = []
    for node in _in_order(engine.parse(source)):
        if isinstance(node, nodes.TemplateData):
            parts.append(node.data)
        else:
            parts.append(_HOLE)
            constants += _constants(node)
    reader = _Read()
    reader.feed("".join(parts))
    reader.close()
    return reader.found + [text for text in constants if _reads(text)]


def _in_order(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield the outputs of a template in the order of its source."""
    if isinstance(node, nodes.Output):
        yield from node.nodes
        return
    for child in node.iter_child_nodes():
        # This block fills in a class.
        if not (isinstance(child, nodes.Block) and child.name == "body_class"):
            yield from _in_order(child)


def _constants(node: nodes.Node) -> Iterator[str]:
    """Yield the strings that an expression may put out as they are."""
    if isinstance(node, nodes.Const):
        if isinstance(node.value, str):
            yield node.value
    elif isinstance(node, nodes.CondExpr):
        yield from _constants(node.expr1)
        if node.expr2 is not None:
            yield from _constants(node.expr2)
    elif isinstance(node, nodes.Concat):
        for part in node.nodes:
            yield from _constants(part)
    elif isinstance(node, nodes.Filter) and node.node is not None:
        yield from _constants(node.node)


def _reads(text: str) -> bool:
    """Whether a string is for people: a word with a capital, or several words."""
    return bool(re.search(r"\b[A-Z][a-z]{2,}|[a-z]{2,} [a-z]{2,}", text)) and "=" not in text


def in_module(source: str) -> list[str]:
    """Return the sentences of a module that are no docstring and no message with a code."""
    tree = ast.parse(source)
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(node.value)
        elif isinstance(node, ast.Assert) and node.msg is not None:
            skipped.add(node.msg)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            place = PLACE_OF_KEYS.get(node.func.id)
            if place is not None:
                skipped.update(part for one in node.args[place:] for part in ast.walk(one))
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node not in skipped
        and _SENTENCE.search(node.value)
    ]


def codes_of_faults(sources: Iterable[str]) -> set[str]:
    """Return the codes of all faults that these modules find, as far as they stand in them."""
    codes: set[str] = set()
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            place = {"Wrong": 0, "Fault": 1}.get(node.func.id)
            if place is not None and len(node.args) > place:
                code = node.args[place]
                parts = [code.body, code.orelse] if isinstance(code, ast.IfExp) else [code]
                codes |= {
                    part.value
                    for part in parts
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                }
    return codes


def untranslated(english: Iterable[str], own: Iterable[str]) -> set[str]:
    """Return the keys without a text in the other language."""
    return set(english) - set(own)


def unasked(english: Iterable[str], own: Iterable[str]) -> set[str]:
    """Return the translated keys that English does not have, and nothing declares."""
    return {key for key in set(own) - set(english) if not key.startswith(OF_DECLARATIONS)}


def placeholders(forms: Sequence[str]) -> set[str]:
    """Return the names that the forms of a text fill in."""
    return {name for form in forms for _, name, _, _ in Formatter().parse(form) if name}


def differing(english: Forms, own: Forms) -> set[str]:
    """Return the keys whose texts do not fill in the same values."""
    return {
        key
        for key, forms in own.items()
        if key in english and placeholders(forms) != placeholders(english[key])
    }


_COUNTED = re.compile(r"\{count\} [a-z]+s\b|\bthese \{count\}|\{(?:hours|days)\} [a-z]+s\b")


def without_plural(english: Forms) -> set[str]:
    """Return the texts with a number before a plural that have no form for one."""
    return {key for key, forms in english.items() if len(forms) == 1 and _COUNTED.search(forms[0])}


def with_other_plurals(english: Forms, own: Forms) -> set[str]:
    """Return the keys that have forms by number in one language alone."""
    return {
        key
        for key, forms in own.items()
        if key in english and (len(forms) > 1) != (len(english[key]) > 1)
    }
