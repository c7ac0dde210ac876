"""Handles imports: a CSV file becomes a job, which a client reads and can cancel.

It is one module because all its handlers return the job that `shown` describes.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import msgspec
from aiohttp import web
from msgspec import UNSET, Struct, UnsetType

from gateway.domain.catalogue import Entry
from gateway.domain.imports import column_notices, import_jobs, import_uploads
from gateway.domain.imports.columns import parse, parts
from gateway.domain.imports.decoding import CHARSETS
from gateway.domain.imports.files import MOST_BYTES, MOST_COLUMNS, MOST_LINES
from gateway.domain.imports.import_jobs import Import, LineFault
from gateway.domain.imports.import_options import CHOICES, options_of
from gateway.domain.imports.import_steps import ENTRIES
from gateway.domain.imports.import_uploads import Choices, SentFile
from gateway.records import idempotency
from gateway.records.errors import Refusal
from gateway.records.idempotency import Outcomes
from gateway.records.resource import Resource
from gateway.records.values import dates
from gateway.records.values.schemas import Id, Instant
from gateway.rest.auth import authenticate
from gateway.rest.body import PRIVATE, answer, keep, readable, restore
from gateway.rest.document import describe, shapes
from gateway.rest.document.operations import Operation, Parameter, Response, Shape, operation
from gateway.rest.params import once_of, refused
from gateway.server.app_keys import DB
from gateway.server.http import bodies, multipart
from outbox.database.transaction import Tx

CSV = "text/csv"
BYTES = "application/octet-stream"
"""The same file to generators of clients, of which some know no CSV."""
TYPES = (
    CSV, BYTES, "text/plain", "application/csv", "application/vnd.ms-excel", "text/vcard",
    "text/x-vcard", "text/directory",
)  # fmt: skip
State = Literal["uploading", "waiting", "running", "done", "failed", "cancelled"]
PARTS = ("columns", "dryRun", *CHOICES)
"""What a form may have beside the file, as the query has it."""
FORM_BYTES = 131_072
"""The largest such part: the headings of all columns."""
_MALFORMED = "Send the whole form, with the file in the part file."
BOOLEANS = {"true": True, "1": True, "false": False, "0": False, "": False}


class ImportFault(Struct, frozen=True):
    """A fault of a line: its number in the file, the heading of the column, the fix."""

    line: int
    column: str
    error: str
    value: str
    """The cell, up to 100 characters of it."""
    warning: bool
    """Whether the line was imported without this cell."""


class ImportJob(Struct, frozen=True, rename="camel"):
    """An import. `rows` lines below the heading, of which `done` were looked at; each of these was
    created, updated, unchanged or faulty, which is not imported. `warnings` cells were left out of
    lines that were imported. `faults` has the first 1,000 of both."""

    id: Id
    type: str
    state: State
    dry_run: bool
    encoding: str
    columns: dict[str, str]
    """The field of each imported column, or the part of a field, by its heading."""
    notices: list[str]
    """What the headings do not say: columns that are left out, names that come from e-mails."""
    rows: int
    done: int
    created: int
    updated: int
    unchanged: int
    faulty: int
    warnings: int
    numbers: str
    dates: str
    mode: str
    duplicates: str
    created_at: Instant
    finished_at: Instant | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    """Why it failed or was cancelled."""
    faults: list[ImportFault] | UnsetType = UNSET


class Imports(Struct, frozen=True):
    """The latest 100 imports, newest first, without their faults."""

    data: list[ImportJob]


RUNNING = ImportJob(
    id=shapes.example_id("import"),
    type="contacts",
    state="running",
    dry_run=False,
    encoding="utf-8",
    columns={"Nome": "name", "E-mail": "email"},
    notices=["Columns not imported: Apelido."],
    rows=1042,
    done=0,
    created=0,
    updated=0,
    unchanged=0,
    faulty=0,
    warnings=0,
    numbers="auto",
    dates="auto",
    mode="lenient",
    duplicates="refuse",
    created_at=shapes.NOW,
    faults=[],
)
ENDED = msgspec.structs.replace(
    RUNNING, state="done", done=1042, created=1000, updated=40, unchanged=1, faulty=1, warnings=1,
    finished_at=shapes.NOW,
    faults=[
        ImportFault(
            17, "E-mail", "email: Send an e-mail address such as maria@example.com.", "bruno", True
        ),
        ImportFault(23, "Nome", "name is required.", "", False),
    ],
)  # fmt: skip
LISTED = msgspec.structs.replace(ENDED, faults=UNSET)
OPTIONS = tuple(
    Parameter(name, {"type": "string", "enum": list(CHOICES[name]), "default": CHOICES[name][0]},
              text, CHOICES[name][1])
    for name, text in (
        ("numbers", "How the file writes numbers; `auto` looks at all cells and at the separator, "
         "and refuses `1.500` where both tell nothing."),
        ("dates", "How the file writes dates beside ISO 8601; `auto` as with `numbers`. A time "
         "without an offset is in the time zone of the account."),
        ("mode", "`lenient` imports a line with a fault in an optional field without this field, "
         "and reports the cell; `strict` refuses the line."),
        ("duplicates", "`refuse` refuses a line whose id or key a line before has; `last` lets it "
         "update the record of that line."),
    )
)  # fmt: skip


def shown(job: Import, faults: Sequence[LineFault] | None = None) -> ImportJob:
    """Return an import as the API shows it; without faults when they are not read."""
    columns = {h: f for h, f in zip(job.headings, job.fields, strict=False) if f}
    told = column_notices.of(ENTRIES[job.plural].resource, job.headings, job.fields)
    ended = job.finished_at
    return ImportJob(
        id=job.id,
        type=job.plural,
        state=job.state,  # type: ignore[arg-type] # the schema of the table checks it
        dry_run=job.dry_run,
        encoding=job.encoding,
        columns=columns,
        notices=[notice.text for notice in told],
        rows=job.line_count,
        done=job.done,
        created=job.created,
        updated=job.updated,
        unchanged=job.unchanged,
        faulty=job.faulty,
        warnings=job.warnings,
        numbers=job.options.numbers,
        dates=job.options.dates,
        mode=job.options.mode,
        duplicates=job.options.duplicates,
        created_at=dates.show(job.created_at),
        finished_at=UNSET if ended is None else dates.show(ended),
        reason=UNSET if job.reason is None else job.reason,
        faults=UNSET
        if faults is None
        else [ImportFault(f.line, f.heading, f.error, f.value, f.warning) for f in faults],
    )


def import_of(entry: Entry) -> Operation:
    """Return POST /api/import/{plural}: 202 with the import of the file."""
    resource = entry.resource

    async def handle(request: web.Request) -> web.Response:
        caller = await authenticate(request)
        caller.must("write")
        db, use = request.app[DB], once_of(caller, request, b"")
        sent = await _sent(request)
        sent.choices()
        outcomes = Outcomes(_accepted, keep, restore)

        async def end(unit: Callable[[Tx], Awaitable[Import]]) -> web.Response:
            once = use and replace(use, fingerprint=sent.fingerprint())
            return await idempotency.write(db, once, outcomes, unit)

        pieces = sent.file if use is None else sent.hashed()
        if use is not None and await db.read(idempotency.is_repeat, use):
            # It needs no room for lines, nor one of the few imports that may run.
            async for _ in pieces:
                pass
            response = await end(_is_gone)
        else:
            file = SentFile(pieces, sent.choices, sent.charset)
            response = await import_uploads.receive(db, caller, entry, file, end=end)
        return readable(caller, response)

    plural = "".join(word.capitalize() for word in resource.plural.split("-"))
    file = shapes.csv_file(resource)
    heading = file.splitlines()[0].split(",")[0]
    accepted = shapes.struct(RUNNING)
    key = f" or by {resource.key}" if resource.key else ""
    return Operation(
        handle, f"import{plural}", resource.plural.replace("-", " ").capitalize(),
        f"Import {resource.plural} from CSV",
        {202: Response("The import, which runs in the background.",
                       shapes.written(accepted), ("Location", "Idempotent-Replayed"))},
        description="The headings of other programs are recognised, in English and Portuguese; "
        f"`columns` names the fields otherwise. A line whose `id` names a record of yours{key} "
        "updates it, where an empty cell changes nothing; any other line creates one. Cells are "
        "separated by comma, semicolon, tab or |; the file is UTF-8, or Windows-1252. The "
        "`Content-Type` is `text/csv`, `application/octet-stream`, for cards `text/vcard`, or "
        "`multipart/form-data` with the file in the part `file` and any parameter of the query as "
        f"a part. At most {MOST_BYTES // 1024**2} MiB, {MOST_LINES:,} lines and {MOST_COLUMNS} "
        "columns.",
        parameters=(
            Parameter(
                "columns", {"type": "string"},
                "The field of each column that is imported, as a JSON object by heading, or as "
                "Heading:field, separated by commas. Other columns are left out."
                f"{_parts(resource)}",
                json.dumps({heading: heading}),
            ),
            Parameter(
                "dryRun", {"type": "boolean", "default": False},
                "Only report the faults of the lines; write nothing.", True,
            ),
            *OPTIONS,
            describe.IDEMPOTENCY_KEY,
        ),
        body=Shape({"type": "string", "format": "binary"}, file), body_type=BYTES,
        refusals=("conflict",),
    )  # fmt: skip


def _accepted(job: Import) -> web.Response:
    return answer(shown(job, []), 202, PRIVATE | {"Location": f"/api/imports/{job.id}"})


async def _is_gone(_tx: Tx) -> Import:
    """Refuse a repeat whose first request expired while its file came in."""
    raise Refusal("conflict", "The first import with this Idempotency-Key is a day old; repeat it.")


def _parts(resource: Resource) -> str:
    """Return the parts of fields that a column can fill, as a further sentence."""
    names = ", ".join(f"`{name}`" for name in parts(resource))
    return f" Beside fields: {names}." if names else ""


@dataclass(frozen=True, slots=True)
class _Sent:
    """The file of a request, its encoding, and the choices of the query and of the form."""

    file: AsyncIterator[bytes]
    charset: str
    query: Mapping[str, str]
    fields: Mapping[str, str] = field(default_factory=dict)
    """The parts of the form before the file, at its end all of them."""
    form: bool = False
    digest: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    async def hashed(self) -> AsyncIterator[bytes]:
        """Yield the file for a request that may be repeated."""
        async for piece in self.file:
            self.digest.update(piece)
            yield piece

    def fingerprint(self) -> bytes:
        """Return what a repeat has in common with its first request, after the file."""
        texts = sorted({**self.query, **self.fields}.items())
        return hashlib.sha256(repr((self.digest.digest(), self.charset, texts)).encode()).digest()

    def choices(self) -> Choices:
        """Return what is chosen so far. Raises validation_error."""
        for name in self.fields:
            if name not in PARTS:
                raise refused(name, f"There is no part {name}; there are file, {', '.join(PARTS)}.")
        texts = {**self.query, **self.fields}
        dry_run = BOOLEANS.get(texts.get("dryRun", "").lower())
        if dry_run is None:
            raise refused("dryRun", "Send true or false.")
        columns = texts.get("columns")
        return Choices(
            None if columns is None else parse(columns),
            options_of(texts),
            dry_run,
            complete=not self.form or columns is not None,
        )


async def _sent(request: web.Request) -> _Sent:
    """Return what a request sends: a file, or a form with one. Raises unsupported_media_type."""
    if not multipart.is_one(request):
        header = request.headers.get("Content-Type")
        return _Sent(bodies.pieces(request, MOST_BYTES), _charset(header), request.query)
    form = await multipart.read(request, MOST_BYTES, _MALFORMED, FORM_BYTES)
    charset = _charset(form.media_type, part=True)
    return _Sent(form.pieces, charset, request.query, form.fields, form=True)


def _charset(header: str | None, *, part: bool = False) -> str:
    """Return the encoding that the client names, or an empty text. A part may be of any type."""
    if header is None:
        return ""
    name, charset = bodies.media_type(header)
    if not part and name not in TYPES:
        raise Refusal("unsupported_media_type", "Send the file as text/csv or text/vcard.")
    if "charset" not in header.lower():
        return ""
    if charset not in CHARSETS:
        raise Refusal("unsupported_media_type", "Send the file in UTF-8 or Windows-1252.")
    return CHARSETS[charset]


@operation("listImports", "Imports", "List imports", shapes.struct(Imports([LISTED])))
async def list_imports(request: web.Request) -> web.Response:
    """GET /api/imports: the latest imports of the caller."""
    caller = await authenticate(request)
    latest = await request.app[DB].read(import_jobs.listed, caller)
    body = msgspec.json.encode(Imports([shown(job) for job in latest]))
    return web.Response(body=body, headers=PRIVATE)


@operation(
    "getImport", "Imports", "Read an import", shapes.struct(ENDED),
    parameters=(describe.id_of("import"),),
    description="An import is deleted 30 days after its end, its lines as they are done.",
)  # fmt: skip
async def read_import(request: web.Request) -> web.Response:
    """GET /api/imports/{id}: an import with its faults."""
    caller = await authenticate(request)
    job, faults = await request.app[DB].read(import_jobs.read, caller, request.match_info["id"])
    return web.Response(body=msgspec.json.encode(shown(job, faults)), headers=PRIVATE)


@operation(
    "cancelImport",
    "Imports",
    "Cancel an import",
    shapes.written(shapes.struct(msgspec.structs.replace(ENDED, state="cancelled"))),
    parameters=(describe.id_of("import"),),
    description="What was imported stays; the counts say how much. An import that has ended stays "
    "as it is.",
)
async def cancel_import(request: web.Request) -> web.Response:
    """DELETE /api/imports/{id}: cancel an import between two of its transactions."""
    caller = await authenticate(request)
    db = request.app[DB]
    job = await db.write(import_jobs.cancel, caller, request.match_info["id"])
    await import_jobs.clear(db, job.id)
    if "read" not in caller.scopes:
        return web.Response(text=json.dumps({"id": job.id}), headers=PRIVATE)
    job, faults = await db.read(import_jobs.read, caller, job.id)
    return web.Response(body=msgspec.json.encode(shown(job, faults)), headers=PRIVATE)
