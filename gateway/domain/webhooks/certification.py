"""The sample events of a certification, from the fields of the catalogue."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.domain.catalogue import EVENT_NAMES, EVENTS
from gateway.domain.webhooks.samples import MARK, resource_of, sample
from outbox.ids import Ids
from outbox.worker.certification.posts import Material, Specimen

LETTERS = " João “Zé” \"q\" \\ / <b>&amp;</b> 🙂 \u2028 'x'"
"""What receivers that verify a body they have written again write in another way."""
WIDEST = "🙂"
"""A letter of four bytes."""


def material(events: Sequence[str], now: int, ids: Ids) -> Material:
    """Return samples of these events, of all without any. `now` is microseconds UTC."""
    samples = tuple(
        Specimen(event, sample(event, ids.new(now), now)) for event in events or EVENT_NAMES
    )
    letters = next(filter(None, map(_with_letters, samples)), samples[0])
    largest = max(map(_as_large_as_can_be, samples), key=lambda one: _length(one.data))
    return Material(samples, letters, largest)


def _with_letters(specimen: Specimen) -> Specimen | None:
    """Return a specimen whose titles have the letters; None when it has no title."""
    data = {
        name: f"{value.removesuffix(MARK)}{LETTERS}{MARK}" if _is_title(value) else value
        for name, value in specimen.data.items()
    }
    return Specimen(specimen.event, data) if data != specimen.data else None


def _is_title(value: Any) -> bool:
    return isinstance(value, str) and value.endswith(MARK)


def _as_large_as_can_be(specimen: Specimen) -> Specimen:
    """Return a specimen whose free texts are as long as a request may make them."""
    if specimen.event not in EVENTS:
        return specimen
    resource = resource_of(specimen.event)
    data = {
        name: _widest(resource.named[name].format.schema, value)
        if name in resource.named
        else value
        for name, value in specimen.data.items()
    }
    return Specimen(specimen.event, data)


def _widest(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the longest free text that a field takes; the value itself of other fields."""
    free = "maxLength" in schema and "pattern" in schema and re.search(schema["pattern"], WIDEST)
    if not free or not isinstance(value, str):
        return value
    return WIDEST * (schema["maxLength"] - len(MARK)) + MARK


def _length(data: Mapping[str, Any]) -> int:
    return sum(len(str(value)) for value in data.values())
