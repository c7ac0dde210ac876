"""Writes docs/reference/costs.md: what one use of each route, page and job may cost.

costs.toml says it by kind; the numbers are those of the code.
"""

import ast
import inspect
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gateway.app import resources
from gateway.console.crm import customer_page
from gateway.console.layout import pages
from gateway.console.records import references, view_page
from gateway.domain.accounts import password_resets, passwords
from gateway.domain.catalogue import RESOURCES
from gateway.domain.cells import directory
from gateway.domain.images import encoder, encoding
from gateway.domain.images import uploads as image_uploads
from gateway.domain.imports import files, import_jobs, import_steps, import_uploads
from gateway.domain.privacy import certificates, page_sizes
from gateway.domain.privacy import erasure_units as erasure
from gateway.domain.reports import periods
from gateway.domain.sales import document_lines, logos
from gateway.domain.storefront.catalogue import word_search
from gateway.domain.storefront.stores import host_proofs
from gateway.domain.webhooks import deliveries, delivery_search, file_text
from gateway.graphql import costs, document_limits, execution, request_context
from gateway.mcp import calls, results
from gateway.records import cascades, digests, exports, finding, included, query
from gateway.rest import batches, lists
from gateway.server.config import Limits
from gateway.server.http import account_turns, bodies
from gateway.server.http.rate_limits import COSTS, EXAMINATIONS
from gateway.server.images import images
from gateway.server.telemetry import health
from gateway.server.upkeep import host_lookups, mailer, web_duties
from outbox.database import sizes, unit_limits
from outbox.durations import DAY, MINUTE
from outbox.events import event_index
from outbox.queue.order import ordering
from outbox.queue.replays import job_steps, snapshot_steps
from outbox.queue.replays import jobs as replays
from outbox.queue.upkeep import retention
from outbox.worker import access_tokens

MIB = 1024 * 1024
BOUNDS: Mapping[str, float] = {
    "health": health.FRESH_SECONDS, "related": view_page.MOST_RELATED,
    "result": results.BYTES, "message": calls.MOST_BYTES,
    "looked_at": finding.LOOKED_AT, "found": finding.SHOWN,
    "named": references.MOST_NAMED,
    "page": query.MOST, "included": included.MOST, "page_bytes": lists.MOST_BYTES // MIB,
    "filtered": COSTS["filtered"], "searched": COSTS["searched"], "reported": COSTS["reported"],
    "log": deliveries.MOST, "history": delivery_search.SECONDS, "days": periods.MOST,
    "scan_wait": unit_limits.SCANS_WAITING, "digest": digests.MOST, "digest_page": digests.PAGE,
    "export": exports.AT_ONCE, "streamed": sizes.STREAMED_BYTES // 1024,
    "streams": unit_limits.STREAMS, "stream_seconds": unit_limits.STREAM_SECONDS,
    "person": erasure.ROWS, "erased": page_sizes.BYTES, "lines": document_lines.MOST,
    "webhooks": Limits().webhooks_per_owner, "batch": batches.MOST,
    "upload_lines": import_uploads.LINES_AT_ONCE,
    "upload_characters": import_uploads.CHARACTERS_AT_ONCE,
    "file": files.MOST_BYTES // MIB, "file_lines": files.MOST_LINES,
    "open_imports": import_jobs.MOST_OPEN, "file_webhooks": file_text.MOST,
    "webhook_file": file_text.MOST_BYTES // 1024, "examinations": EXAMINATIONS,
    "logo": logos.MOST_BYTES // MIB,
    "cost": costs.COST, "completed": costs.COMPLETED,
    "anonymous": bodies.ANONYMOUS_BYTES // 1024, "parts": digests.PARTS,
    "snapshot_bytes": snapshot_steps.MOST_BYTES // 1024,
    "proofs": host_proofs.AT_ONCE, "lookup": host_lookups.SECONDS,
    "counted": replays.COUNTED, "running": replays.MOST_RUNNING, "hashes": passwords.WAITING_MOST,
    "words": word_search.MOST, "document": document_limits.CHARACTERS,
    "depth": document_limits.DEPTH,
    "aliases": document_limits.ALIASES, "mutations": document_limits.MUTATIONS,
    "graphql": execution.SECONDS,
    "step_sqlite": import_steps.MOST["sqlite"], "step_postgres": import_steps.MOST["postgres"],
    "step_characters": import_steps.CHARACTERS,
    "job_sqlite": job_steps.MOST["sqlite"], "job_postgres": job_steps.MOST["postgres"],
    "snapshot": snapshot_steps.MOST, "dependants": cascades.MOST,
    "dependants_ms": cascades.UNIT_SECONDS * 1000, "retention": retention.PAGE,
    "certificate": certificates.AT_ONCE, "mails": mailer.MOST, "marks": event_index.PAGE,
    "image": encoding.MOST_BYTES // MIB, "pixels": encoder.MOST_PIXELS // 10**6,
    "encoding": encoding.SECONDS, "encoders": encoding.AT_ONCE, "images_each": encoding.EACH,
    "images_waiting": encoding.WAITING, "images_read": images.READ_AT_ONCE,
    "images_removed": image_uploads.REMOVED_AT_ONCE,
    "images_rewritten": image_uploads.REWRITTEN_AT_ONCE, "turning": ordering.PAGE,
    "names": directory.PAGE, "lists_each": account_turns.LISTS_EACH,
    "files_wait": account_turns.FILES_WAITING,
    "operations_each": account_turns.OPERATIONS_EACH, "weighed": costs.WEIGHED,
    "part": request_context.PART,
    "file_weight": customer_page.FILE_WEIGHT, "niceness": encoder.NICENESS,
    "soon": host_proofs.SOON // MINUTE, "ends": host_proofs.ENDS // DAY,
    "resets": password_resets.MOST, "tokens": access_tokens.MOST,
    "strangers": pages.STRANGERS_AT_ONCE,
}  # fmt: skip
"""The bounds that costs.toml names, from where they hold."""
_PLURAL = re.compile(rf"/(?:{'|'.join(sorted((r.plural for r in RESOURCES), key=len)[::-1])})\b")


@cache
def table() -> Mapping[str, Any]:
    """Return the table with the numbers filled in."""
    text = Path(__file__).with_name("costs.toml").read_text("utf-8")
    shown = {name: f"{value:,.10g}" for name, value in BOUNDS.items()}
    entries = re.sub(r'^(?!  ").*$', lambda line: _filled(line[0], shown), text, flags=re.M)
    return tomllib.loads(entries)


def _filled(line: str, shown: Mapping[str, str]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: shown[found[1]], line)


def routes() -> set[str]:
    """Return the method and the path of each route; what each resource has counts once."""
    found = set()
    for resource in resources(with_doors=True):
        for route in resource:
            if route.method not in ("HEAD", "*"):
                path = resource.canonical
                if not path.startswith("/api/reports/"):
                    path = _PLURAL.sub("/{plural}", path, count=1)
                found.add(f"{route.method} {path}")
    return found


def duty_names() -> set[str]:
    """Return the names of the duties that the leader runs."""
    calls = (
        node for node in ast.walk(ast.parse(inspect.getsource(web_duties)))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("once_every", "when")
    )  # fmt: skip
    names = {one.args[1].value for one in calls if isinstance(one.args[1], ast.Constant)}
    return {str(name) for name in names} | {batches.name for batches in web_duties.BATCHES}


def lines() -> Iterator[str]:
    """Yield the generated part of the page."""
    columns = ("rows", "bytes", "place", "milliseconds", "bound")
    head = "rows | bytes | where | ms | bound |\n| --- | --- | --- | --- | --- | --- |"
    kinds, jobs = table()["kinds"], table()["jobs"]
    yield f"## Kinds\n\n| kind | {head}"
    for kind in kinds.values():
        yield f"| {kind['title']} | {' | '.join(kind[name] for name in columns)} |"
    yield f"\n## Jobs\n\n| job | {head}"
    for name, job in jobs.items():
        yield f"| `{name}` | {' | '.join(job[column] for column in columns)} |"
    for one in sorted(web_duties.BATCHES, key=lambda one: one.name):
        if one.name not in jobs:
            rows = f"{one.most} rows | of their keys | the writer"
            yield f"| `{one.name}` | {rows} | – | rows of a transaction |"
    yield "\n## Routes and pages\n\n| method and path | kind |\n| --- | --- |"
    of = {route: kind["title"] for kind in kinds.values() for route in kind["routes"]}
    for route in sorted(of, key=lambda one: (one.split()[1], one)):
        yield f"| `{route}` | {of[route]} |"
