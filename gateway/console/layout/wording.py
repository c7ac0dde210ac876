"""Says in the reader's language what the declarations and the domain say in English.

The English text of a hint is the description of its field, that of a fault or a refusal is its
message. Other languages have it in their catalogue by `hint.<noun>.<field>`, `fault.<code>` and
`refused.<code>`; a fault may have a text of its own for a field (`fault.<code>.<field>`), for a
character that its message names (`fault.<code>.character`), or for so many numbers in its message
(`fault.<code>.2`), which it then repeats, or repeat as `{after}` what follows the last colon.
"""

import re
from collections.abc import Iterable, Sequence

from gateway.domain.catalogue import RESOURCES
from gateway.domain.sales.company_settings import COMPANY
from gateway.domain.sales.pipelines import PIPELINE
from gateway.records.errors import Fault, Refusal
from gateway.records.resource import Field, Form
from gateway.texts import Texts

NAMES = ("first", "second", "third")
_NUMBER = re.compile(r"(?<![\w.])[0-9]+(?:\.[0-9]+)?(?![\w])", re.ASCII)
_CHARACTER = re.compile(r"U\+[0-9A-F]{4,6} [\w -]+")
_WORD = re.compile("[A-Za-z]+")
FORMS: Sequence[Form] = (*RESOURCES, PIPELINE, COMPANY)
"""What pages have forms of."""
_NOUNS = {field: form.noun for form in FORMS for field in form.fields}


def hint_of(texts: Texts, field: Field) -> str:
    """Return what a field is for."""
    noun = noun_of(field).replace(" ", "_")
    return texts.get(f"hint.{noun}.{field.name}", field.description.replace("`", ""))


def noun_of(field: Field) -> str:
    """Return the noun of the form that has a field; empty for a part of one."""
    return _NOUNS.get(field, "")


def said(texts: Texts, fault: Fault) -> str:
    """Return what is wrong and how to mend it."""
    named = _CHARACTER.search(fault.message)
    if named is not None and (key := f"fault.{fault.code}.character") in texts:
        return texts(key, character=named[0])
    field = (_WORD.findall(fault.field) or [""])[-1]
    numbers = [_shown(texts, number) for number in _NUMBER.findall(fault.message)][: len(NAMES)]
    code = f"fault.{fault.code}"
    for key in (f"{code}.{field}", f"{code}.{len(numbers)}", code):
        if key in texts:
            after = fault.message.rpartition(": ")[2].removesuffix(".")
            return texts(key, after=after, **dict(zip(NAMES, numbers, strict=False)))
    return fault.message


def by_field(texts: Texts, faults: Iterable[Fault]) -> dict[str, str]:
    """Return what is wrong, by field."""
    return {fault.field: said(texts, fault) for fault in faults}


def refused(texts: Texts, refusal: Refusal) -> str:
    """Return why a request was refused: its message may be a key."""
    if refusal.message in texts:
        return texts(refusal.message)
    if refusal.faults and len(refusal.faults) == 1:
        return said(texts, refusal.faults[0])
    return texts.get(f"refused.{refusal.code}", refusal.message)


def together(texts: Texts, faults: Sequence[Fault]) -> str:
    """Return what is wrong with one input, each thing once."""
    return " ".join(dict.fromkeys(said(texts, fault) for fault in faults))


def _shown(texts: Texts, number: str) -> str:
    return texts.number(float(number), 3) if "." in number else texts.number(int(number))
