"""Says in the reader's language what the declarations and the domain say in English.

The English text of a hint is the description of its field, that of a fault or a refusal stands
beside its rule. Other languages have it in their catalogue by `hint.<noun>.<field>`,
`fault.<code>` and `refused.<code>`; a fault may have a text of its own for a field
(`fault.<code>.<field>`), or for the names of its parameters (`fault.<code>.least_most`).
"""

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from gateway.domain.catalogue import RESOURCES
from gateway.domain.sales.company_settings import COMPANY
from gateway.domain.sales.pipelines import PIPELINE
from gateway.records.errors import Fault, Refusal
from gateway.records.resource import Field, Form
from gateway.texts import Texts

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
    field = (_WORD.findall(fault.field) or [""])[-1]
    code = f"fault.{fault.code}"
    for key in (f"{code}.{field}", f"{code}.{'_'.join(fault.values)}", code):
        if key in texts:
            return texts(key, **{name: _shown(texts, one) for name, one in fault.values.items()})
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


def _shown(texts: Texts, value: Any) -> Any:
    return texts.number(float(value), 3) if isinstance(value, float | Decimal) else value
