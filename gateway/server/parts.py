"""The parts of a server that may be handed in: tests prove with others that each rule is needed.

A clock of your own, a sender that does something else, another way to record results: hand them to
`gateway.__main__.main` or `build_app`, instead of changing the product's modules.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.domain.accounts.passwords import Passwords
from outbox.clock import Clock, SystemClock
from outbox.database.transaction import Database
from outbox.queue.replays.snapshot_steps import Source
from outbox.sending.egress_guard import Guard
from outbox.sending.send import Sender
from outbox.worker.recovering import Recovering
from outbox.worker.settling import Settling


@dataclass(frozen=True, slots=True)
class Parts:
    """What a server is made of, as far as it can be exchanged."""

    clock: Clock = field(default_factory=SystemClock)
    passwords: Callable[..., Passwords] = Passwords
    sender: Callable[[Guard, Clock], Sender] = Sender
    settling: Callable[[Database, Clock], Settling] = Settling
    """Records the results of sends."""
    recovering: Callable[[Database, Source], Recovering] = Recovering
    """Runs the jobs of replays and snapshots."""
    lock_tries: int = 200
    """How often a step of a live move begins, at most, while others hold its locks: 10 seconds."""


PARTS = Parts()
"""Those of the product."""
