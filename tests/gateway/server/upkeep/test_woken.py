"""What a commit waits for begins at once, not at the next look of the duties."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from outbox.database.transaction import Database
from outbox.worker import duties
from tests.support.rest import RestApi
from tests.support.site import serving
from tests.support.waiting import until


@pytest.mark.slow
async def test_a_dry_run_begins_when_it_is_sent(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No look comes after the first: only the signal can begin it.
    monkeypatch.setattr(duties, "LOOK_SECONDS", 86_400.0)
    with capture_logs() as lines:
        async with serving(db) as site:
            # A node that does not lead yet leaves what is signalled to the next look.
            await until(lambda: db.one_writer or any(one["event"] == "leading" for one in lines))
            who = await RestApi(site).person()
            for _ in range(3):
                sent = await who.call(
                    "POST", "/api/import/contacts?dryRun=true", data=b"name\nAna\n",
                    Content_Type="text/csv",
                )  # fmt: skip

                async def done(job_path: str = sent.headers["Location"]) -> bool:
                    job = (await who.get(job_path)).body
                    return bool(job["state"] == "done" and job["created"] == 1)

                assert await until(done)
