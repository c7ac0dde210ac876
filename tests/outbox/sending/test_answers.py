"""Raw answers: what we make of each, and what curl, Go's and Node's clients make of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outbox.sending.response import Reading
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


def read(pieces: Iterable[bytes]) -> tuple[object, ...]:
    reading = Reading()
    for piece in pieces:
        reading.feed(piece)
    reading.lose(cleanly=True)
    return reading.head, bytes(reading.body), reading.notes, bool(reading.refusal), reading.complete


def test_pieces_are_read_as_the_whole() -> None:
    for raw in ANSWERS:
        whole, size = read([raw.data]), len(raw.data)
        for step in {1, 3, 7, size // 2 + 1} if size < 1000 else {999}:
            pieces = [raw.data[at : at + step] for at in range(0, size, step)]
            assert read(pieces) == whole, (raw.name, step)


@pytest.mark.slow
@given(st.data())
def test_no_bytes_break_it(data: st.DataObject) -> None:
    """What differs in a few bytes from an answer is read to an end too."""
    raw = bytearray(data.draw(st.sampled_from(ANSWERS)).data[:500])
    for _ in range(data.draw(st.integers(0, 5))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    cut = data.draw(st.integers(0, len(raw)))
    read([bytes(raw[:cut]), bytes(raw[cut:])])


@pytest.mark.proof
async def test_the_others(tmp_path: Path) -> None:
    for tool in ("curl", "go", "node"):
        need(tool)
    async with served(ANSWERS) as urls:
        found = await verdicts(urls, tmp_path)
    for client, told in found.items():
        recorded = {raw.name: raw.verdicts[client] for raw in ANSWERS}
        assert dict(zip(recorded, told, strict=True)) == recorded, client
