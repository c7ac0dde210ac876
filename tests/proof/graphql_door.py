"""The lines of the storefront: GraphQL over HTTP, and documents that cost too much."""

from __future__ import annotations

from tests.benchmarks.registry import BENCHMARKS
from tests.benchmarks.sizes import FULL
from tests.proof.outcome import Line, Outcome
from tests.system.documents import run_audits, run_documents

UNGUARDED = "tests.system.unguarded_serve"
CONTROL = "3,000 fields of one name"


async def graphql_http_audit(seed: int) -> Outcome:
    """Run every audit of the npm package graphql-http against a server: 61 of 61."""
    outcome = Outcome()
    outcome.add("audit", await run_audits())
    return outcome


async def abusive_documents(seed: int) -> Outcome:
    """Send documents that cost too much beside health checks; unguarded, one must take long."""
    outcome = Outcome()
    outcome.add("documents", await run_documents())
    told = await run_documents(module=UNGUARDED, only=CONTROL, UNGUARDED="documents")
    outcome.figures["control: unguarded"] = told["findings"]
    outcome.need(
        bool(told["findings"]), "unguarded, no document takes long: the bar proves nothing"
    )
    return outcome


async def storefront_speed(seed: int) -> Outcome:
    """Query a cart, against a bare handler and graphql-core alone."""
    outcome = Outcome()
    verdict = await BENCHMARKS["storefront"](FULL)
    outcome.figures["storefront"] = verdict.figures
    outcome.reasons += verdict.reasons
    return outcome


LINES: dict[str, Line] = {
    "graphql-http-audit": graphql_http_audit,
    "abusive-documents": abusive_documents,
    "storefront-speed": storefront_speed,
}
