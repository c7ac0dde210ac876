"""Verify the delivery log of one owner in the target of his move, as `carteiro verify` does.

A fault that the source has too moves as it is. Any other one was made on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gateway.cli.moving.moved_rows import Rings
from outbox.database.exclusive import Exclusive
from outbox.database.transaction import Tx
from outbox.errors import CannotStart
from outbox.queue.proof.chain_walk import Fault, Key
from outbox.queue.proof.owner_chains import OwnerChains


class Damaged(CannotStart):
    """The target has a fault in the log that the source does not have."""


class ChainProof:
    """The verification of one move between `ends`, source and target.

    `sentences` tell the faults that both have.
    """

    def __init__(self, owner_id: str, ends: tuple[Exclusive, Exclusive], rings: Rings) -> None:
        self.sentences: list[str] = []
        self._owner_id = owner_id
        self._source, self._target = ends
        self._ring = rings[0]
        self._chains = OwnerChains(owner_id, rings[1])

    async def advance(self, source: Tx, target: Tx, keys: Sequence[Key]) -> int:
        """Verify all, then only what is new: `keys` are of attempts stored since.

        Return how many attempts were read. Raise Damaged.
        """
        before = self._chains.checked
        faults = await self._chains.since(self._target, target, keys)
        await self._judge(source, faults)
        return self._chains.checked - before

    async def _judge(self, source: Tx, faults: Iterable[Fault]) -> None:
        for fault in faults:
            earlier = OwnerChains(self._owner_id, self._ring)
            if fault not in await earlier.whole(self._source, source, fault.webhook_id):
                raise Damaged(
                    f"the delivery log is damaged in the target, not in the source: "
                    f"{fault.sentence} The account stays in the source; repeat the command"
                )
            self.sentences.append(f"{fault.sentence} It was so before, and moves as it is.")
