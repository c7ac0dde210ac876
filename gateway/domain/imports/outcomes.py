"""Gathers what the lines of a transaction came to, and stores the report of their faults."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

from msgspec import json

from gateway.domain import import_lines
from gateway.domain.import_lines import FaultyLine
from gateway.domain.imports import import_jobs, repeated_lines
from gateway.domain.imports.import_jobs import Import, LineFault
from gateway.domain.imports.line_reading import ReadLine
from gateway.records.errors import Fault
from outbox.database.sql import insert
from outbox.database.transaction import Tx

MOST_KEPT = 10_000
"""Faulty lines of an import that are kept."""
MOST_KEPT_CHARACTERS = 16 * 1024 * 1024
_COLUMNS = (
    "import_id", "nth", "line", "heading", "error", "field", "code", "value", "warning",
    "parameters",
)  # fmt: skip
_PARAMETERS = json.Encoder(decimal_format="number")


@dataclass(slots=True)
class Outcomes:
    """What some lines came to."""

    place: int
    done: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    faulty: int = 0
    warnings: int = 0
    faults: list[LineFault] = field(default_factory=list)
    lines: list[FaultyLine] = field(default_factory=list)
    keys: Sequence[repeated_lines.Row] = ()

    def clear(self, place: int) -> None:
        """Begin again after the line `place`."""
        new = Outcomes(place)
        for one in fields(self):
            setattr(self, one.name, getattr(new, one.name))

    def refuse(self, job: Import, line: ReadLine, faults: Sequence[Fault]) -> None:
        """Count a line that is not imported."""
        self.faulty += 1
        self.faults += import_jobs.line_faults(job, (line.number, line.cells), faults)
        self.lines.append(FaultyLine(line.number, None, line.cells))

    def warn(self, job: Import, line: ReadLine, faults: Sequence[Fault], record_id: str) -> None:
        """Count the cells that a line was imported without."""
        if not faults:
            return
        self.warnings += len(faults)
        self.faults += import_jobs.line_faults(job, (line.number, line.cells), faults, warning=True)
        self.lines.append(FaultyLine(line.number, None if job.dry_run else record_id, line.cells))

    async def save(self, tx: Tx, job: Import) -> None:
        """Store the faults, the faulty lines and the keys of the lines."""
        await repeated_lines.save(tx, job.id, self.keys)
        if not self.faults:
            return
        room = MOST_KEPT_CHARACTERS - job.kept_characters
        with_room: list[FaultyLine] = []
        for line in self.lines[: MOST_KEPT - job.kept_lines]:
            room -= sum(map(len, line.cells))
            if room < 0:
                break
            with_room.append(line)
        if with_room:
            await import_lines.keep(tx, job.id, with_room)
            size = sum(len(cell) for line in with_room for cell in line.cells)
            await tx.run(
                """update imports set kept_lines = kept_lines + $2,
                  kept_characters = kept_characters + $3 where id = $1""",
                job.id,
                len(with_room),
                size,
            )
        row = await tx.one(
            "select coalesce(max(nth), 0) as nth from import_faults where import_id = $1", job.id
        )
        had = 0 if row is None else int(row["nth"])
        # An erasure finds the value of a fault by its line.
        there = {line.line for line in with_room}
        rows = [
            (job.id, nth, fault.line, fault.heading, fault.error, fault.field, fault.code,
             fault.value if fault.line in there else "", fault.warning,
             _PARAMETERS.encode(fault.values).decode())
            for nth, fault in enumerate(self.faults[: import_jobs.MOST_FAULTS - had], start=had + 1)
        ]  # fmt: skip
        await insert(tx, "import_faults", _COLUMNS, rows)
