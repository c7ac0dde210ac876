"""GraphQL over HTTP, judged by the audits of the npm package graphql-http."""

import asyncio
import json
from dataclasses import dataclass

import pytest

from tests.support.node import run_node
from tests.support.rest import RestApi

GRAPHQL_HTTP = "graphql-http"
SCRIPT = """
import { auditServer } from "graphql-http";
const url = await new Promise((resolve) => process.stdin.once("data", (d) => resolve(`${d}`)));
const results = await auditServer({ url });
console.log(JSON.stringify(results.map(({ id, name, status, reason }) => (
  { id, name, status, reason: reason ?? "" }))));
process.exit(0);
"""


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of one audit; its status is ok, notice, warn or error."""

    id: str
    name: str
    status: str
    reason: str


async def audit(url: str) -> list[Audit]:
    """Return the results of all audits of the endpoint `url`."""
    # In a thread, because the server may run on this loop.
    done = await asyncio.to_thread(run_node, SCRIPT, GRAPHQL_HTTP, stdin=url)
    return [Audit(**found) for found in json.loads(done.stdout)]


AUDITS = 61


@pytest.mark.proof
@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_every_audit_passes(api: RestApi) -> None:
    verdicts = await audit(f"{api.site.url}/graphql")
    assert len(verdicts) == AUDITS
    assert [one for one in verdicts if one.status != "ok"] == []
