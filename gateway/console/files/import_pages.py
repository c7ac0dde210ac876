"""The pages of imports: upload a file, choose its columns, check it, start, watch, cancel."""

import re
from collections.abc import AsyncGenerator, Sequence

from aiohttp import web

from gateway.console.layout import error_pages, pages, polling, templates, wording
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.layout.reader import READER
from gateway.console.records.nouns import Words, label_of
from gateway.domain import import_lines
from gateway.domain.catalogue import Entry
from gateway.domain.import_lines import Line
from gateway.domain.imports import (
    column_notices,
    columns,
    import_jobs,
    import_reports,
    import_uploads,
)
from gateway.domain.imports.files import MOST_BYTES, MOST_LINES
from gateway.domain.imports.import_jobs import Import, LineFault
from gateway.domain.imports.import_options import CHOICES, options_of
from gateway.domain.imports.import_steps import CHARACTERS, ENTRIES
from gateway.records.audit import Actor
from gateway.records.errors import Refusal
from gateway.records.values.folding import fold
from gateway.server.app_keys import DB
from gateway.server.http.answers import Flow, begun
from gateway.server.http.multipart import Upload
from gateway.texts import Texts
from outbox.database.transaction import Tx

SAMPLES = 3
"""Lines of a file that its page shows."""
SAMPLE_CHARACTERS = 60
SHOWN_FAULTS = 200
LATEST = 10
_LINE = re.compile("line ([0-9]+)", re.ASCII)
_FORM = ("validation_error", "conflict", "invalid_reference")


async def new(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the form that uploads a file, and the latest imports of its kind."""
    return await _form(request, visitor, _entry(request))


async def upload(request: web.Request, visitor: SignedIn, form: Upload) -> web.StreamResponse:
    """Receive a file; its import waits until its columns are chosen."""
    entry, db = _entry(request), request.app[DB]
    try:
        job = await import_uploads.receive(
            db,
            visitor.actor,
            entry,
            import_uploads.SentFile(form.pieces, import_uploads.Choices),
            end=db.write,
            held=True,
        )
    except Refusal as refusal:
        if refusal.code not in _FORM or refusal.message.startswith("error."):
            raise
        return await _form(request, visitor, entry, refusal)
    return pages.to(f"/console/imports/{job.id}")


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show an import: its columns while it waits, how far it is, its faults."""
    return await _show(request, visitor)


async def start(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Check the lines of a waiting import, or import them."""
    db, import_id = request.app[DB], pages.id_of(request)
    job = await db.read(import_jobs.own, visitor.actor, import_id)
    entry = ENTRIES[job.plural]
    allowed = columns.importable(entry.resource)
    typed = [form.text(f"column-{place}") for place in range(len(job.headings))]
    fields = [field if field in allowed else "" for field in typed]
    try:
        if job.state == "waiting":
            columns.must_do(entry.resource, fields)
        options = options_of({name: form.text(name) for name in CHOICES})
        await db.write(
            import_jobs.start, visitor.actor, import_id,
            import_reports.with_own_id(job.headings, fields),
            dry_run=form.text("act") != "start", options=options,
        )  # fmt: skip
    except Refusal as refusal:
        if refusal.code not in _FORM:
            raise
        return await _show(request, visitor, fields, refusal)
    return pages.to(f"/console/imports/{import_id}")


async def cancel(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Cancel an import; what it has written stays."""
    db, import_id = request.app[DB], pages.id_of(request)
    job = await db.write(import_jobs.cancel, visitor.actor, import_id)
    await import_jobs.clear(db, job.id)
    return pages.to(f"/console/imports/{job.id}", "import_cancelled")


async def faults_file(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Send the faults of an import as a CSV file in the language of the reader."""
    db, texts = request.app[DB], request[READER].texts
    job = await db.read(import_reports.of, visitor.actor, pages.id_of(request))
    headings = [texts(f"import.{name}") for name in ("line", "column", "value", "fix", "result")]
    pieces = import_reports.faults(
        db, job, headings=headings, separator=texts.separator, bom=True,
        say=lambda one: (_told(texts, one), _result(texts, one)),
    )  # fmt: skip
    return await _file(pieces, texts("import.faults"))


async def lines_file(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Send the faulty lines of an import as a file that can be mended and sent again."""
    db = request.app[DB]
    job = await db.read(import_reports.of, visitor.actor, pages.id_of(request))
    return await _file(
        import_reports.lines(db, job, bom=True), request[READER].texts("import.faulty")
    )


async def _file(pieces: AsyncGenerator[bytes, None], name: str) -> web.StreamResponse:
    file = "-".join(fold(name).split())
    headers = {
        "Content-Type": "text/csv; charset=utf-8",
        "Content-Disposition": f'attachment; filename="{file}.csv"',
    }
    return Flow(await begun(pieces), headers)


def _entry(request: web.Request) -> Entry:
    entry = ENTRIES.get(request.match_info["plural"])
    if entry is None:
        raise Refusal("not_found", "error.not_found_help")
    return entry


async def _form(
    request: web.Request, visitor: SignedIn, entry: Entry, refusal: Refusal | None = None
) -> web.StreamResponse:
    latest = await request.app[DB].read(import_jobs.listed, visitor.actor)
    plural = entry.resource.plural
    context = {
        "words": Words(request[READER].texts, entry.resource), "plural": plural,
        "key": _key(request, entry), "refusal": _said(request, refusal),
        "latest": [job for job in latest if job.plural == plural][:LATEST],
        "megabytes": MOST_BYTES // 1024**2, "lines": MOST_LINES,
    }  # fmt: skip
    status = 200 if refusal is None else error_pages.status_of(refusal)
    return templates.render(request, visitor, "import.html", context, status=status)


async def _show(
    request: web.Request,
    visitor: SignedIn,
    fields: Sequence[str] | None = None,
    refusal: Refusal | None = None,
) -> web.StreamResponse:
    job, faults, samples = await request.app[DB].read(_read, visitor.actor, pages.id_of(request))
    entry, texts = ENTRIES[job.plural], request[READER].texts
    names = columns.importable(entry.resource)
    checked = job.state == "waiting" and job.done > 0
    fields_by_column = fields or (job.fields if any(job.fields) else _guess(entry, job.headings))
    context = {
        "job": job, "more": len(faults) > SHOWN_FAULTS,
        "faults": [
            (one.line, one.heading, one.value, _told(texts, one), _result(texts, one))
            for one in faults[:SHOWN_FAULTS]
        ],
        "words": Words(texts, entry.resource), "plural": job.plural,
        "columns": [
            {
                "heading": heading, "field": fields_by_column[place],
                "samples": [cells[place][:SAMPLE_CHARACTERS] for _, cells in samples
                            if place < len(cells) and cells[place]],
            }
            for place, heading in enumerate(job.headings)
        ],
        "fields": [(name, label_of(texts, name)) for name in names],
        "required": [label_of(texts, name) for name in entry.resource.required],
        "key": _key(request, entry), "refusal": _said(request, refusal),
        "checked": checked, "lines": job.line_count - (job.faulty if checked else 0),
        "notices": [
            texts(f"import.notice.{one.code}", **one.values)
            for one in column_notices.of(entry.resource, job.headings, fields_by_column)
        ],
        "choices": CHOICES, "options": job.options,
    }  # fmt: skip
    status = 200 if refusal is None else error_pages.status_of(refusal)
    return polling.live(
        request, visitor, "import_job.html", "parts/import.html", context, status=status
    )


async def _read(
    tx: Tx, actor: Actor, import_id: str
) -> tuple[Import, Sequence[LineFault], Sequence[Line]]:
    job, faults = await import_jobs.read(tx, actor, import_id, SHOWN_FAULTS + 1)
    waits = job.state == "waiting"
    return (
        job,
        faults,
        await import_lines.after(tx, job.id, 0, SAMPLES, CHARACTERS) if waits else [],
    )


def _told(texts: Texts, fault: LineFault) -> str:
    """Return what is wrong with a line: a spreadsheet has names where a reference takes ids."""
    if fault.code == "invalid_reference":
        return texts("import.reference")
    return wording.said(texts, fault.fault)


def _result(texts: Texts, fault: LineFault) -> str:
    """Return what became of the line of a fault."""
    return texts("import.without" if fault.warning else "import.refused")


def _guess(entry: Entry, headings: Sequence[str]) -> Sequence[str]:
    """Return the fields that the headings name."""
    return import_reports.with_own_id(headings, columns.guess(entry.resource, headings))


def _key(request: web.Request, entry: Entry) -> str:
    """Return the label of the field by which a line finds a record; may be empty."""
    key = entry.resource.key
    return label_of(request[READER].texts, key) if key else ""


def _said(request: web.Request, refusal: Refusal | None) -> str | None:
    """Return why a file or its columns were refused, with the line of the file."""
    if refusal is None:
        return None
    texts = request[READER].texts
    if len(refusal.faults) != 1:
        return wording.refused(texts, refusal)
    [fault] = refusal.faults
    said, line = wording.said(texts, fault), _LINE.fullmatch(fault.field)
    if said == fault.message:
        return refusal.message
    return said if line is None else f"{texts('import.line')} {line[1]}: {said}"
