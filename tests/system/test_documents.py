"""GraphQL documents that cost too much are refused, and every audit of graphql-http passes."""

from __future__ import annotations

import pytest

from tests.system.documents import run_audits, run_documents

CONTROL = "3,000 fields of one name"

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


async def test_every_audit_passes() -> None:
    told = await run_audits()
    assert told["pass"], told


@pytest.mark.timed
async def test_documents_that_cost_too_much_hold_up_nobody() -> None:
    told = await run_documents()
    assert told["pass"], told


async def test_a_document_that_is_not_bounded_is_seen() -> None:
    told = await run_documents(
        module="tests.system.unguarded_serve", only=CONTROL, UNGUARDED="documents"
    )
    assert told["findings"], told
