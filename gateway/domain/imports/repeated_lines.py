"""Finds the lines of a file whose id or key a line before has: nothing is merged silently.

What lines have written is known by digests, which the database holds from transaction to
transaction, so that a restart forgets nothing.
"""

from collections.abc import Sequence
from hashlib import blake2b

from gateway.domain.imports.import_jobs import Import
from gateway.domain.imports.import_options import LAST
from gateway.domain.imports.line_reading import ReadLine
from gateway.domain.imports.matching import key_of
from gateway.records.errors import Fault
from gateway.records.resource import Resource
from outbox.database.sql import ITEMS, items
from outbox.database.transaction import Tx

DIGEST = 10
"""Bytes of a digest: two of 200,000 lines are equal once in many millions of millions of files."""
Row = tuple[str, int]
"""A digest and its line."""
_KNOWN = """
select digest, line from import_keys where import_id = $1 and digest
/*sqlite in (select value from json_each($2))*/
/*postgres = any (array(select json_array_elements_text(cast($2 as json))))*/
"""
_SAVE = f"""
insert into import_keys (import_id, digest, line)
select $2, value ->> 0, cast(value ->> 1 as bigint) from {ITEMS}
"""


class Repeats:
    """The ids and keys of lines that were written before, and of those that follow."""

    def __init__(self, job: Import, resource: Resource) -> None:
        self._job = job
        self._resource = resource
        self._last_wins = job.options.duplicates == LAST
        self._lines: dict[str, int] = {}
        self._digests: dict[int, Sequence[str]] = {}
        """The digests of a line, by its number: that of its id or else of its key first."""
        self.rows: list[Row] = []
        """What is new, to be stored."""

    async def look_ahead(self, tx: Tx, lines: Sequence[ReadLine]) -> None:
        """Read what is known of lines."""
        if self._last_wins:
            return
        self._digests = {line.number: self._digests_of(line) for line in lines}
        digests = sorted({digest for some in self._digests.values() for digest in some})
        if digests:
            rows = await tx.all(_KNOWN, self._job.id, items(digests))
            self._lines = {row["digest"]: row["line"] for row in rows}

    def fault_of(self, line: ReadLine) -> Fault | None:
        """Return the fault of a line that repeats one before.

        A line with an id is known by it: the lines of an export may share a key.
        """
        for digest in self._digests.get(line.number, ())[:1]:
            first = self._lines.get(digest)
            if first is not None:
                name = "id" if line.record_id else self._resource.key
                text = (
                    "Line {line} of the file has the same {name}; delete one of the two, or "
                    "import with duplicates=last, which lets the last one win."
                )
                return Fault(name, "repeated", text, {"line": first, "name": name})
        return None

    def note(self, line: ReadLine) -> None:
        """Note a line that is written."""
        for digest in self._digests.get(line.number, ()):
            if digest not in self._lines:
                self._lines[digest] = line.number
                self.rows.append((digest, line.number))

    def _digests_of(self, line: ReadLine) -> Sequence[str]:
        found = [f"id {line.record_id.strip().lower()}"] if line.record_id else []
        key = key_of(self._resource, line.new)
        if key is not None:
            found.append(f"key {key}")
        return [self._digest(one) for one in found]

    def _digest(self, text: str) -> str:
        seed = f"{self._job.id} {self._job.run} {text}"
        return blake2b(seed.encode(errors="replace"), digest_size=DIGEST).hexdigest()


async def save(tx: Tx, import_id: str, rows: Sequence[Row]) -> None:
    """Store what is new of the lines of a transaction."""
    if rows:
        await tx.run(_SAVE, items(rows), import_id)
