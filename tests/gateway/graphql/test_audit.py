"""GraphQL over HTTP, judged by the audits of the npm package graphql-http."""

import pytest

from tests.support.audits import audit
from tests.support.rest import RestApi

AUDITS = 61


@pytest.mark.slow
@pytest.mark.parametrize("db_url", ["sqlite"], indirect=True)
async def test_every_audit_passes(api: RestApi) -> None:
    found = await audit(f"{api.site.url}/graphql")
    assert len(found) == AUDITS
    assert [one for one in found if one.status != "ok"] == []
