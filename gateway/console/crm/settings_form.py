"""Saves a form of settings of the account: its version, its faults, and what was typed."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from gateway.console.layout import error_pages
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.console.records import inputs, typed_values
from gateway.console.records.typed_values import Typed
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.record import Draft, check
from gateway.records.resource import Form as Fields
from gateway.server.app_keys import DB
from outbox.database.transaction import Tx

Change = Callable[[Tx, Actor, Draft, frozenset[str] | None], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a form shows: the settings or what was typed, their version, and the faults."""

    typed: Typed
    version: str
    faults: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    codes: frozenset[str] = frozenset()
    """Those of the faults."""


async def save(
    request: web.Request, visitor: SignedIn, form: Form, fields: Fields, unit: Change
) -> Shown | None:
    """Save the settings unless they have changed since the form was loaded.

    Return None, or what the form shows when fields have faults. Raise conflict for settings that
    have changed.
    """
    texts, version = request[READER].texts, form.text("version")
    form_inputs = inputs.inputs(texts, fields.fields)
    typed = typed_values.of_form(form, form_inputs)
    draft = check(
        fields, typed_values.values(typed, form_inputs, texts, creating=False), from_json=True
    )
    try:
        await request.app[DB].write(unit, visitor.actor, draft, frozenset({version}))
    except Refusal as refusal:
        if refusal.code == "precondition_failed":
            raise Refusal("conflict", "error.changed") from None
        if not refusal.faults:
            raise
        faults = typed_values.faults(texts, refusal.faults, form_inputs, typed)
        codes = frozenset(fault.code for fault in refusal.faults)
        return Shown(typed, version, faults, error_pages.status_of(refusal), codes)
    return None
