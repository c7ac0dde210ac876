"""No text outside the catalogues, and each text in each language.

Every check is shown a seeded fault too, which it must find.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from string import Formatter
from typing import Any, get_args

import jinja2
import pytest
from babel.messages.pofile import read_po
from jinja2 import nodes

import gateway
from gateway import texts
from gateway.console.layout import wording
from gateway.console.layout.templates import environment
from gateway.console.records.nouns import Words, label_of
from gateway.domain.catalogue import RESOURCES
from gateway.records.errors import Fault, Refusal
from gateway.records.resource import Field, Form, Resource
from outbox.sending import urls

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


def codes_of_faults(sources: Iterable[str]) -> dict[str, set[str]]:
    """Return the codes of all faults that these modules find, each with its parameters."""
    codes: dict[str, set[str]] = {}
    for source in sources:
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            place = {"Wrong": 0, "CertificateFault": 0, "Fault": 1}.get(node.func.id)
            if place is not None and len(node.args) > place:
                code = node.args[place]
                parts = [code.body, code.orelse] if isinstance(code, ast.IfExp) else [code]
                names = {one.arg for one in node.keywords if one.arg}
                for values in node.args:
                    if isinstance(values, ast.Dict):
                        names |= {str(ast.literal_eval(key)) for key in values.keys if key}
                for part in parts:
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        codes.setdefault(part.value, set()).update(names)
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


_COUNTED = re.compile(r"\{count\} [a-zà-ú]+s\b|\bthese \{count\}|\{(?:hours|days)\} [a-z]+s\b")
NO_NOUN = ("de", "delas", "em", "não")
"""Words behind a number that are the same for every number."""


def without_plural(one: Forms) -> set[str]:
    """Return the texts with a number before a plural that have no form for one."""
    return {
        key
        for key, forms in one.items()
        # A script has the text for one by another key.
        if len(forms) == 1 and _COUNTED.search(forms[0]) and not key.endswith("many")
    }


def disagreeing(portuguese: texts.Texts) -> list[str]:
    """Return the texts whose noun does not agree with 0, 1 or 2 before it."""
    found = []
    for key, forms in portuguese.forms.items():
        for count in (0, 1, 2) if len(forms) > 1 else ():
            values = dict.fromkeys(placeholders(forms), "x") | {"count": count}
            text = portuguese(key, **values)
            noun = re.search(rf"\b{count} ([^\W\d_]+)", text)
            if noun and noun[1] not in NO_NOUN and noun[1].endswith("s") != (count != 1):
                found.append(text)
    return found


def with_other_plurals(english: Forms, own: Forms) -> set[str]:
    """Return the keys that have forms by number in one language alone."""
    return {
        key
        for key, forms in own.items()
        if key in english and (len(forms) > 1) != (len(english[key]) > 1)
    }


HERE = Path(gateway.__path__[0])
TEMPLATES = sorted((HERE / "console" / "templates").rglob("*.html"))
MODULES = [
    path
    for path in sorted((HERE / "console").rglob("*.py"))
    if path.name != "told_steps.py"  # the patterns of what the engine says
]
EN, PT = texts.of("en"), texts.of("pt-BR")
OWN = {key: PT.forms[key] for key in texts.own_keys("pt-BR")}
FAULTS = [path for room in ("records", "domain", "console") for path in (HERE / room).rglob("*.py")]
SAME = {
    "POST",  # a method of HTTP
    "CNPJ…",  # a number has this name in English too
    "placeholder=status = won", "placeholder=5 s, 5 min, 2 h",  # what is typed is the same
    "placeholder=https://example.com/hooks/crm", "placeholder=Authorization: Bearer …",
    "go run check.go verify.go",  # a command
}  # fmt: skip
IN_OTHER_WORDS = {
    "unreadable",  # its message is a text of the catalogue
    "invalid_id",  # of global ids, which the storefront alone has
}


def outside(found: Sequence[str]) -> list[str]:
    return [text for text in found if text not in SAME]


def test_a_template_has_no_texts_of_its_own() -> None:
    engine = environment()
    found = {path.name: outside(in_template(engine, path.read_text())) for path in TEMPLATES}
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("<p>Nothing here</p>", ["Nothing here"]),
        ("<p>{{ t('nav.keys') }} <b>and more</b></p>", ["and more"]),
        ('<a title="Go on" href="/x">{{ x }}</a>', ["title=Go on"]),
        ('<svg aria-label="{{ n }} attempts"></svg>', ["aria-label= \x00  attempts"]),
        ('<input placeholder="Type here">', ["placeholder=Type here"]),
        ("{% if x %}<td>{{ x }} UTC</td>{% endif %}", ["…UTC"]),
        ("<p>{{ 'Saved' if x else t('nav.keys') }}</p>", ["Saved"]),
        ("{% macro a(b) %}<i>{{ b }}</i> lost{% endmacro %}", ["lost"]),
        ("<code>POST /api</code> {{ x }}: 1 – <b>{{ t('nav.keys') }}</b>", []),
        ("<option{{ ' selected' if x }}>{{ x }}</option>{# a note for us #}", []),
    ],
)
def test_a_text_in_a_template_is_found(source: str, found: list[str]) -> None:
    assert in_template(environment(), source) == found


@pytest.mark.slow
def test_no_module_of_the_console_says_a_sentence_of_its_own() -> None:
    found = {path.name: outside(in_module(path.read_text())) for path in MODULES}
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


def test_a_sentence_in_a_module_is_found() -> None:
    source = '"""A doc string of it."""\ncontext = {"note": "Nothing was sent yet."}\n'
    assert in_module(source) == ["Nothing was sent yet."]
    assert in_module("raise Refusal('conflict', 'It has ended by now.')\n") == []
    assert in_module('def f():\n    """It does that now."""\n') == []


def test_every_key_has_a_text_in_each_language() -> None:
    assert untranslated(texts.own_keys("en"), OWN) == set()
    assert unasked(EN, OWN) == set()
    assert untranslated(texts.own_keys("en"), OWN.keys() - {"nav.keys"}) == {"nav.keys"}
    assert unasked(EN, {**OWN, "nav.kyes": ("Chaves",)}) == {"nav.kyes"}


def test_the_languages_fill_in_the_same_values() -> None:
    # A message of the storefront may say less: what it names can be there already.
    same = {key: forms for key, forms in EN.forms.items() if not key.startswith("shop.")}
    assert differing(same, OWN) == set()
    seeded = {**OWN, "job.of": ("{past} de {todos}",)}
    assert differing(same, seeded) == {"job.of"}


def test_a_count_has_a_form_for_one() -> None:
    assert without_plural(EN.forms) == without_plural(OWN) == set()
    assert disagreeing(PT) == []
    assert disagreeing(replace(PT, forms={"a": ("{count} pedidos", "{count} pedido")}))
    assert with_other_plurals(EN.forms, OWN) == set()
    seeded: Mapping[str, Sequence[str]] = {"a": ("{count} events wait",), "b": ("{count} of 2",)}
    assert without_plural(seeded) == {"a"}
    assert with_other_plurals({"a": ("one", "{count}")}, {"a": ("{count}",)}) == {"a"}


MADE = [
    one for one in RESOURCES
    if Words(PT, one).new not in (PT("records.new"), EN("records.new"))
]  # fmt: skip
"""What somebody can create in the console."""


@pytest.mark.parametrize("resource", MADE, ids=lambda one: one.plural)
def test_the_words_of_a_list_agree_with_its_noun(resource: Resource) -> None:
    words = Words(PT, resource)
    feminine = words.new.startswith("Nova")
    assert words.all == ("Todas" if feminine else "Todos")
    if "active" in resource.named:
        assert label_of(PT, "active", resource.noun) == ("Ativa" if feminine else "Ativo")
    for value in ("true", "false"):
        if (key := f"{resource.plural}.choice.{value}") in PT:
            assert PT(key).endswith("as" if feminine else "os")


def test_counts_of_one_and_of_many() -> None:
    for texts_of, one, many, none in (
        (EN, "1 later delivery", "1,234 later deliveries", "0 later deliveries"),
        (PT, "1 entrega seguinte", "1.234 entregas seguintes", "0 entregas seguintes"),
    ):
        assert texts_of("lines.place_count", count=0).startswith(none)
        assert texts_of("lines.place_count", count=1).startswith(one)
        assert texts_of("lines.place_count", count=1234).startswith(many)
        # A count that stopped at its limit is a text.
        assert "1" in texts_of("lines.place_count", count="1,000+")
        assert texts_of("lines.place_count", count="1,000+").split()[1] == many.split()[1]


def test_no_catalogue_has_an_entry_without_a_text() -> None:
    for path in (HERE / "texts").rglob("*.po"):
        with path.open("rb") as file:
            for message in read_po(file, abort_invalid=True):
                if message.id:
                    several = isinstance(message.string, (tuple, list))
                    forms: Any = message.string if several else [message.string]
                    assert all(forms), (path.name, message.id)
                    assert not message.fuzzy, (path.name, message.id)


def schemas(schema: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a field and its members, by name, with their schemas."""
    yield name, schema
    for inner in (*schema.get("anyOf", ()), schema.get("items")):
        if inner:
            yield from ((at, one) for at, one in schemas(inner, name) if at != name or one is inner)
    for member, inner in schema.get("properties", {}).items():
        yield from schemas(inner, member)


FIELDS: list[tuple[Form, Field, str, Mapping[str, Any]]] = [
    (resource, field, name, schema)
    for resource in wording.FORMS
    for field in resource.fields
    for shape in (field.format.schema, field.format.shown or {})
    for name, schema in schemas(shape, field.name)
]


def test_every_field_has_a_label_and_every_option_a_word() -> None:
    names = {name for _, _, name, _ in FIELDS}
    names |= {derived.name for resource in RESOURCES for derived in resource.derived}
    assert len(names) > 100
    assert {name for name in names if f"field.{name}" not in OWN} == set()
    options = {option for *_, schema in FIELDS for option in schema.get("enum", ()) if option}
    said = {option for option in options if re.search("[A-Za-z]", option)}
    assert len(said) > 30
    assert {option for option in said if f"option.{option}" not in PT} == set()


def test_every_field_has_a_hint_in_portuguese() -> None:
    for resource, field, name, _ in FIELDS:
        if name == field.name:
            assert wording.hint_of(EN, field) == field.description.replace("`", "")
            key = f"hint.{resource.noun.replace(' ', '_')}.{name}"
            assert wording.hint_of(PT, field) == PT(key), key
    declared = {
        f"hint.{resource.noun.replace(' ', '_')}.{name}"
        for resource in wording.FORMS
        for name in (
            *(field.name for field in resource.fields),
            *(derived.name for derived in getattr(resource, "derived", ())),
        )
    }
    assert {key for key in OWN if key.startswith("hint.")} == declared


@pytest.mark.slow
def test_every_code_of_a_fault_has_a_text() -> None:
    codes = codes_of_faults(path.read_text() for path in FAULTS)
    assert len(codes) > 40
    missing = {code for code in codes if f"fault.{code}" not in OWN}
    assert missing - IN_OTHER_WORDS == set()
    # Each value that a text repeats is a parameter, by the name that the code gives it.
    for key, forms in OWN.items():
        area, _, code = key.partition(".")
        known = codes.get(code.partition(".")[0])
        if area == "fault" and known is not None:
            assert placeholders(forms) <= known, key
    seeded = (
        "raise Wrong('new_rule', 'Send {least}.', least=1)\n"
        "Fault('a', 'b' if c else 'd', 'e', {'most': 9})\n"
    )
    assert codes_of_faults([seeded]) == {"new_rule": {"least"}, "b": {"most"}, "d": {"most"}}


def test_each_refusal_of_a_url_has_a_text() -> None:
    # Its code is put together from the kind, so it is in no module.
    assert {kind for kind in get_args(urls.Kind) if f"fault.refused_{kind}" not in OWN} == set()


@pytest.mark.parametrize(
    ("fault", "english", "portuguese"),
    [
        (Fault("name", "too_long", "Send at most {most} letters.", {"most": 2048}),
         "Send at most 2048 letters.", "Use no máximo 2.048 caracteres."),
        (Fault("price", "out_of_range", "From {least} to {most}.",
               {"least": Decimal("0.01"), "most": 100.5}),
         "From 0.01 to 100.5.", "Informe um valor de 0,01 a 100,5."),
        # Numbers of a text are never read: without parameters, the code alone has a sentence.
        (Fault("name", "too_long", "Send at most 9 letters."), "Send at most 9 letters.",
         "O texto é longo demais."),
        (Fault("shippingRules[2].cepTo", "disagrees", "cepFrom must not be after cepTo."),
         "cepFrom must not be after cepTo.", "O primeiro CEP não pode vir depois do último."),
        (Fault("x", "of_no_text", "Mend {it}."), "Mend {it}.", "Mend {it}."),
        (
            Fault("url", "refused_form", "The host name must be in its standard form: {form}.",
                  {"form": "bücher.br"}),
            "The host name must be in its standard form: bücher.br.",
            "O nome do host precisa estar na forma padrão: bücher.br.",
        ),
    ],
)  # fmt: skip
def test_a_fault_is_told_in_each_language(fault: Fault, english: str, portuguese: str) -> None:
    assert wording.said(EN, fault) == english
    assert wording.said(PT, fault) == portuguese


def test_a_refusal_is_told_in_each_language() -> None:
    refusal = Refusal("conflict", "The webhook has changed meanwhile; reload the page.")
    assert wording.refused(EN, refusal) == refusal.message
    assert wording.refused(PT, refusal) == PT("refused.conflict")
    assert wording.refused(PT, Refusal("conflict", "error.job_ended")) == PT("error.job_ended")
