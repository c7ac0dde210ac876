"""Fills the fields of a record from the cells of a line, by the targets of the columns.

Of several e-mails and phones the first becomes the field; what a record has no other place for
becomes lines of its notes, each with its heading.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.imports import headings, shop_cells
from gateway.domain.imports.columns import ID
from gateway.records.errors import Fault
from gateway.records.resource import Resource
from gateway.records.values.csv_cells import plain
from gateway.records.values.folding import fold
from outbox.ids import is_id

NAMES = ("namePrefix", "firstName", "middleName", "lastName", "nameSuffix")
"""The parts of a name, in order."""
# Google's, those of HubSpot and Outlook, and those between phones on a card.
_BETWEEN = {"email": re.compile(r":::|[;,|\n]"), "phone": re.compile(r":::|[;,|/\n]")}
_JOINED = " ::: "
_QUOTED = re.compile(r'"([^"]*)"')
_NUMBERED = re.compile(r" \([0-9]+\)$")


@dataclass(slots=True)
class Filled:
    """What a line says of a record."""

    record_id: str = ""
    cells: dict[str, str] = field(default_factory=dict)
    """Cells by field, which the format of the field reads."""
    values: dict[str, Any] = field(default_factory=dict)
    """JSON values by field, where several cells make one."""
    grams: str = ""
    """A weight in `unit`, the target of its column; empty without one."""
    unit: str = ""
    company: str = ""
    """The name of a company."""
    spare_name: str = ""
    """The name of a new record whose line has none."""
    lines: list[str] = field(default_factory=list)
    """Lines of the notes that no column of notes has."""
    faults: list[Fault] = field(default_factory=list)
    """What is left out."""


@dataclass(frozen=True, slots=True)
class _Column:
    place: int
    target: str
    heading: str
    base: str
    """What the heading has in common with the column of its label."""
    own: bool
    """Whether the heading is the name of the field, as an export writes it."""


class Filling:
    """Fills records of a resource from lines with these headings and targets."""

    def __init__(
        self, resource: Resource, file_headings: Sequence[str], targets: Sequence[str]
    ) -> None:
        self._resource = resource
        self._has_notes = "notes" in resource.creatable
        self._columns = [
            _Column(place, target, heading, _base(heading), heading == target)
            for place, (heading, target) in enumerate(zip(file_headings, targets, strict=False))
            if target
        ]
        self.width = len(file_headings)
        self._is_named = "name" in targets
        """Whether each line must have its name in a cell."""

    def fill(self, cells: Sequence[str]) -> Filled:
        """Return what a line says. An empty cell says nothing."""
        filled = Filled()
        by_target: dict[str, list[tuple[_Column, str]]] = {}
        for column in self._columns:
            cell = cells[column.place] if column.place < len(cells) else ""
            # Without a label, the value still goes by what its heading has in common with it.
            if cell or column.target == "label":
                by_target.setdefault(column.target, []).append((column, cell))
        labels = {one.base: plain(cell).strip(" *") for one, cell in by_target.pop("label", ())}
        for target, these in by_target.items():
            self._take(filled, target, these, labels)
        self._name(filled, by_target)
        if self._resource.plural == "products":
            shop_cells.complete(filled.cells, filled.values, self._texts(by_target))
            images = filled.values.get("images", ())
            if len(images) > shop_cells.MOST_IMAGES:
                filled.values["images"] = images[: shop_cells.MOST_IMAGES]
                text = "A product has at most {most} images; the others are left out."
                most = {"most": shop_cells.MOST_IMAGES}
                filled.faults.append(Fault("images", "too_many", text, most))
        if "employees" in by_target and "size" not in filled.cells:
            filled.cells["size"] = _size(plain(by_target["employees"][0][1]))
        self._note(filled, by_target.get("notes", ()))
        return filled

    def _texts(
        self, found: Mapping[str, Sequence[tuple[_Column, str]]]
    ) -> Mapping[str, Sequence[str]]:
        """Return the texts of the filled cells by target, with each target that has a column."""
        return {
            column.target: [plain(cell) for _, cell in found.get(column.target, ())]
            for column in self._columns
        }

    def _take(
        self, filled: Filled, target: str, these: Sequence[tuple[_Column, str]],
        labels: Mapping[str, str],
    ) -> None:  # fmt: skip
        """Take the cells of the columns of one target."""
        column, cell = these[0]
        if target == ID:
            # The ids of other programs say nothing here.
            filled.record_id = cell if is_id(cell.strip().lower()) else ""
        elif target in ("notes", "noteLine"):
            if target == "noteLine":
                filled.lines += [_line(one, text, labels) for one, text in these]
        elif target in _BETWEEN:
            self._take_first(filled, target, these, labels)
        elif target == "company":
            filled.company = plain(cell).strip()
            filled.lines += [
                _line(one, text, labels)
                for one, text in these[1:]
                if fold(plain(text)) != fold(filled.company)
            ]
        elif target in ("tags", "categories"):
            self._take_list(filled, target, these)
        elif target == "images":
            if cell.startswith("["):
                filled.cells[target] = cell
                if not column.own and (listed := shop_cells.listed_images(cell)):
                    filled.values[target] = listed
                    del filled.cells[target]
            elif images := shop_cells.images(plain(text) for _, text in these):
                filled.values[target] = images
        elif target in headings.grams():
            filled.grams, filled.unit = cell, target
        elif target == "description":
            self._describe(filled, these)
        elif target in self._resource.importable:
            filled.cells[target] = cell
            meaning = headings.words(target).get(fold(plain(cell)))
            if meaning is not None:
                filled.cells[target] = meaning
            filled.lines += [_line(one, text, labels) for one, text in these[1:] if text != cell]

    def _take_first(
        self, filled: Filled, target: str, these: Sequence[tuple[_Column, str]],
        labels: Mapping[str, str],
    ) -> None:  # fmt: skip
        """Take the first of several e-mails or phones, and the others as lines."""
        taken: set[str] = set()
        for column, cell in these:
            for text in _BETWEEN[target].split(plain(cell)):
                value = text.strip()
                if not value or value.casefold() in taken:
                    continue
                if not taken:
                    filled.cells[target] = value
                elif self._has_notes:
                    filled.lines.append(_line(column, value, labels))
                taken.add(value.casefold())

    def _take_list(self, filled: Filled, target: str, these: Sequence[tuple[_Column, str]]) -> None:
        """Take the items of one list or of several, as the programs write them."""
        column, cell = these[0]
        theirs = shop_cells.is_path(cell) if target == "categories" else _is_theirs(cell)
        if len(these) == 1 and (column.own or not theirs):
            filled.cells[target] = cell
            return
        items: list[str] = []
        for _, text in these:
            items += shop_cells.paths(text) if target == "categories" else _tags(plain(text))
        if items:
            filled.values[target] = list(dict.fromkeys(items))

    def _describe(self, filled: Filled, these: Sequence[tuple[_Column, str]]) -> None:
        """Take a description, HTML as text; the name of the field as heading keeps all as it is."""
        if these[0][0].own:
            filled.cells["description"] = these[0][1]
            return
        texts = dict.fromkeys(shop_cells.text_of(plain(cell)) for _, cell in these)
        if joined := "\n\n".join(text for text in texts if text):
            filled.values["description"] = joined

    def _name(self, filled: Filled, by_target: Mapping[str, Sequence[tuple[_Column, str]]]) -> None:
        """Make the name from its parts, and find one for a record without any."""
        if "name" not in self._resource.creatable:
            return
        parts = (plain(by_target[part][0][1]).strip() for part in NAMES if part in by_target)
        if "name" not in filled.cells and (full_name := " ".join(filter(None, parts))):
            filled.values["name"] = full_name
        if "name" in filled.values or self._is_named:
            return
        if self._resource.plural == "contacts":
            local = filled.cells.get("email", "").strip().partition("@")
            filled.spare_name = (
                filled.company or (local[0] if local[1] else "") or filled.cells.get("phone", "")
            )

    def _note(self, filled: Filled, notes: Sequence[tuple[_Column, str]]) -> None:
        """Put the notes of a line and its other lines together."""
        if not self._has_notes:
            return
        if len(notes) == 1 and not filled.lines:
            filled.cells["notes"] = notes[0][1]
        elif notes:
            filled.values["notes"] = "\n".join([*(plain(cell) for _, cell in notes), *filled.lines])
            filled.lines = []


def _base(heading: str) -> str:
    return heading.rpartition(" - ")[0]


def _line(column: _Column, text: str, labels: Mapping[str, str]) -> str:
    """Return a line of the notes: `E-mail 2 (Work): b@example.com`."""
    label = labels.get(column.base, "")
    named = _NUMBERED.sub("", column.base if column.base in labels else column.heading)
    text = ", ".join(line.strip() for line in plain(text).splitlines() if line.strip())
    return f"{named} ({label}): {text}" if label else f"{named}: {text}"


def _is_theirs(cell: str) -> bool:
    """Return whether a list has the separators of Google or the quotes of Mailchimp."""
    return _JOINED in cell or cell.startswith(("* ", '"'))


def _tags(cell: str) -> Iterable[str]:
    """Return the tags of a cell; the groups that Google itself makes have an asterisk."""
    if _JOINED.strip() in cell or cell.startswith("* "):
        parts: Iterable[str] = (
            tag.strip() for tag in cell.split(_JOINED.strip()) if not tag.strip().startswith("* ")
        )
    elif quoted := _QUOTED.findall(cell):
        parts = quoted
    else:
        parts = re.split(";" if ";" in cell else ",", cell)
    return [tag for part in parts if (tag := part.strip())]


def _size(text: str) -> str:
    """Return the size of a company by its number of people."""
    digits = re.sub(r"[^0-9]", "", text)
    if "-" in text or not digits:
        return text
    people = int(digits[:12])
    return next((size for size, most in headings.sizes().items() if people <= most), "1000+")
