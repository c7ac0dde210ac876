"""Tells what an import does with a file that its headings do not say."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.domain.imports.columns import field_of, left_out
from gateway.records.resource import Resource

MOST = 2_000
"""Characters of the headings that a notice names."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice: its code, its text in English, and the values of the text."""

    code: str
    text: str
    values: dict[str, str] = field(default_factory=dict)


def of(resource: Resource, headings: Sequence[str], targets: Sequence[str]) -> list[Notice]:
    """Return the notices of a file whose columns have these targets."""
    notices: list[Notice] = []
    without = left_out(resource, headings, targets)
    if without and any(targets):
        names = ", ".join(without)
        names = names if len(names) <= MOST else f"{names[:MOST]}…"
        notices.append(Notice("left_out", f"Columns not imported: {names}.", {"columns": names}))
    fills = {field_of(target) for target in targets if target}
    if resource.plural == "contacts" and "email" in fills and "name" not in fills:
        notices.append(
            Notice(
                "named_by_email",
                "No column has names: a new contact gets the part of its e-mail before @ as name.",
            )
        )
    if "company" in targets:
        notices.append(
            Notice(
                "companies",
                "Companies are found by their names; those that are not there are created.",
            )
        )
    if resource.plural == "products" and ("option" in targets or "parent" in targets):
        notices.append(
            Notice("variants", "Each variant becomes a product of its own, named after both.")
        )
    return notices
