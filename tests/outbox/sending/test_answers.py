"""Raw answers: what we make of each, and what curl, Go's and Node's clients make of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.other_clients import Raw, raw_answers, served, verdicts
from tests.support.requirements import need
from tests.support.senders import post, sender

ANSWERS = raw_answers()


@pytest.mark.parametrize("raw", ANSWERS, ids=lambda raw: raw.name)
async def test_ours(raw: Raw) -> None:
    async with served([raw]) as [url], sender() as client:
        outcome = await post(client, url)
        status = outcome.status if outcome.status is not None else ""
        ours = str(status) if outcome.decided else f"refused {status}".strip()
        assert (ours, outcome.error or "") == (raw.ours, raw.says)
        assert outcome.response_body.decode("latin-1") == raw.body
        if raw.says:
            # Bytes of an odd response must not be taken for the response to the next request.
            assert not (await post(client, url)).reused


def test_each_difference_has_its_reason() -> None:
    assert len(ANSWERS) >= 100
    for raw in ANSWERS:
        status = raw.ours.partition(" ")[0]
        differs = any(verdict.split()[0] != status for verdict in raw.verdicts.values())
        assert differs == bool(raw.why), raw.name


@pytest.mark.proof
async def test_the_others(tmp_path: Path) -> None:
    for tool in ("curl", "go", "node"):
        need(tool)
    async with served(ANSWERS) as urls:
        found = await verdicts(urls, tmp_path)
    for client, told in found.items():
        recorded = {raw.name: raw.verdicts[client] for raw in ANSWERS}
        assert dict(zip(recorded, told, strict=True)) == recorded, client
