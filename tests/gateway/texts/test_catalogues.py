"""No text outside the catalogues, and each text in each language.

Every check is shown a seeded fault too, which it must find.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from babel.messages.pofile import read_po

import gateway
from gateway import texts
from gateway.console.frame import wording
from gateway.console.frame.templates import environment
from gateway.domain.catalogue import RESOURCES
from gateway.records.errors import Fault, Refusal
from gateway.records.resource import Field, Form
from outbox.sending import urls
from tests.gateway.texts import audit_of_texts as audit

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
    "unreadable"  # its message is a text of the catalogue
}


def outside(found: Sequence[str]) -> list[str]:
    return [text for text in found if text not in SAME]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_a_template_has_no_texts_of_its_own(path: Path) -> None:
    assert outside(audit.in_template(environment(), path.read_text())) == []


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
    assert audit.in_template(environment(), source) == found


def test_no_module_of_the_console_says_a_sentence_of_its_own() -> None:
    found = {path.name: outside(audit.in_module(path.read_text())) for path in MODULES}
    assert {name: sentences for name, sentences in found.items() if sentences} == {}


def test_a_sentence_in_a_module_is_found() -> None:
    source = '"""A doc string of it."""\ncontext = {"note": "Nothing was sent yet."}\n'
    assert audit.in_module(source) == ["Nothing was sent yet."]
    assert audit.in_module("raise Refusal('conflict', 'It has ended by now.')\n") == []
    assert audit.in_module('def f():\n    """It does that now."""\n') == []


def test_every_key_has_a_text_in_each_language() -> None:
    assert audit.untranslated(EN, OWN) == set()
    assert audit.unasked(EN, OWN) == set()
    assert audit.untranslated(EN, OWN.keys() - {"nav.keys"}) == {"nav.keys"}
    assert audit.unasked(EN, {**OWN, "nav.kyes": ("Chaves",)}) == {"nav.kyes"}


def test_the_languages_fill_in_the_same_values() -> None:
    assert audit.differing(EN.forms, OWN) == set()
    seeded = {**OWN, "job.of": ("{past} de {todos}",)}
    assert audit.differing(EN.forms, seeded) == {"job.of"}


def test_a_count_has_a_form_for_one() -> None:
    assert audit.without_plural(EN.forms) == set()
    assert audit.with_other_plurals(EN.forms, OWN) == set()
    seeded: Mapping[str, Sequence[str]] = {"a": ("{count} events wait",), "b": ("{count} of 2",)}
    assert audit.without_plural(seeded) == {"a"}
    assert audit.with_other_plurals({"a": ("one", "{count}")}, {"a": ("{count}",)}) == {"a"}


def test_counts_of_one_and_of_many() -> None:
    for texts_of, one, many in (
        (EN, "1 later delivery", "1,234 later deliveries"),
        (PT, "1 entrega seguinte", "1.234 entregas seguintes"),
    ):
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
    assert {option for option in said if f"option.{option}" not in OWN} == set()


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


def test_every_code_of_a_fault_has_a_text() -> None:
    codes = audit.codes_of_faults(path.read_text() for path in FAULTS)
    assert len(codes) > 40
    assert {code for code in codes - IN_OTHER_WORDS if f"fault.{code}" not in OWN} == set()
    seeded = "raise Wrong('new_rule', 'Send more.')\nFault('a', 'b' if c else 'd', 'e')\n"
    assert audit.codes_of_faults([seeded]) == {"new_rule", "b", "d"}


def test_each_refusal_of_a_url_has_a_text() -> None:
    # Its code is put together from the kind, so it is in no module.
    assert {kind for kind in get_args(urls.Kind) if f"fault.refused_{kind}" not in OWN} == set()


@pytest.mark.parametrize(
    ("fault", "english", "portuguese"),
    [
        (Fault("name", "too_long", "Send at most 2048 letters."), "Send at most 2048 letters.",
         "Use no máximo 2.048 caracteres."),
        (Fault("price", "out_of_range", "Send an amount from 0.01 to 100.5."),
         "Send an amount from 0.01 to 100.5.", "Informe um valor de 0,01 a 100,5."),
        (Fault("shippingRules[2].cepTo", "disagrees", "cepFrom must not be after cepTo."),
         "cepFrom must not be after cepTo.", "O primeiro CEP não pode vir depois do último."),
        (Fault("x", "of_no_text", "Mend it."), "Mend it.", "Mend it."),
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
