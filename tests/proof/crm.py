"""The lines of the CRM API: contract, events, document, numbers and lists."""

from __future__ import annotations

from tests.benchmarks.registry import BENCHMARKS
from tests.benchmarks.sizes import FULL
from tests.proof.commands import select
from tests.proof.outcome import Line, Outcome
from tests.support.engines import Engine
from tests.system.generated import EXCLUSIONS, run_generated_calls

ENGINES: tuple[Engine, ...] = ("sqlite", "postgres")
CONTRACT = "tests/gateway/rest/test_contract.py"
OPERATIONS = 29
EVENTS = 20
CALLS = 2_000
MOST_EXCLUSIONS = 5
SHOW = "test_answers_that_are_not_in_the_document_are_found"


async def contract(seed: int) -> Outcome:
    """Run every documented operation as owner, other user and nobody, also with bad ids."""
    outcome = Outcome()
    await select(
        outcome, CONTRACT, "-k", "facts or each_caller or what_fails or on_a_route",
        at_least=2 * 2 * OPERATIONS,
    )  # fmt: skip
    return outcome


async def events(seed: int) -> Outcome:
    """Cause each of the 20 events by a real request, and verify its delivery."""
    outcome = Outcome()
    await select(
        outcome, CONTRACT, "tests/gateway/rest/test_events_feed.py",
        "-k", "event or announces_nothing or completing or what_fails", at_least=EVENTS,
    )  # fmt: skip
    return outcome


async def generated_calls(seed: int) -> Outcome:
    """Run schemathesis on the served document with all checks; it must find wrong responses."""
    outcome = Outcome()
    for engine in ENGINES:
        told = await run_generated_calls(engine, seed)
        outcome.add(engine, {name: value for name, value in told.items() if name != "said"})
        calls = int(str(told.get("calls", 0)))
        outcome.need(calls >= CALLS, f"{engine}: {calls} calls, wanted {CALLS}")
    outcome.figures["exclusions"] = list(EXCLUSIONS)
    outcome.need(len(EXCLUSIONS) <= MOST_EXCLUSIONS, f"{len(EXCLUSIONS)} exclusions")
    await select(outcome, "tests/system/test_schemathesis.py", "-k", SHOW, at_least=1)
    return outcome


async def numbering(seed: int) -> Outcome:
    """Create 200 invoices at once on each engine: no gap, no repeat, no illegal move."""
    outcome = Outcome()
    await select(
        outcome, "tests/gateway/domain/sales/test_invoices.py",
        "tests/gateway/domain/sales/test_quotes.py",
        "-k", "neither_gaps or a_race", at_least=8,
    )  # fmt: skip
    return outcome


async def lists(seed: int) -> Outcome:
    """Read lists with 100,000 records beside 1,000, and single records beside a bare handler."""
    outcome = Outcome()
    for name in ("lists", "read_path"):
        verdict = await BENCHMARKS[name](FULL)
        outcome.figures[name] = verdict.figures
        outcome.reasons += [f"{name}: {reason}" for reason in verdict.reasons]
    return outcome


async def conformance(seed: int) -> Outcome:
    """Run the same cases on both engines."""
    outcome = Outcome()
    await select(outcome, "tests/conformance", at_least=20)
    return outcome


LINES: dict[str, Line] = {
    "contract": contract,
    "events": events,
    "generated-calls": generated_calls,
    "numbering": numbering,
    "lists": lists,
    "conformance": conformance,
}
