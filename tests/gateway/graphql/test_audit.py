"""GraphQL over HTTP, judged by the audits of the npm package graphql-http."""

import pytest

from tests.support.audits import audit
from tests.support.rest import RestApi

AUDITS = 61


@pytest.mark.proof
@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_every_audit_passes(api: RestApi) -> None:
    verdicts = await audit(f"{api.site.url}/graphql")
    assert len(verdicts) == AUDITS
    assert [one for one in verdicts if one.status != "ok"] == []
