"""The product with one rule broken: it guesses the outcome of a COMMIT without a reply.

Run in place of `python -m gateway`, on PostgreSQL; ASSUME is the guess: `committed` or `aborted`.
"""

from __future__ import annotations

import os
import sys

from gateway.__main__ import main
from outbox.database.postgres.commit_outcome import CommitOutcomes, Mark, Session


async def guessed(self: CommitOutcomes, mark: Mark | Session, deadline: float) -> bool:
    """Replaces the query to the server."""
    return os.environ["ASSUME"] == "committed"


if __name__ == "__main__":
    CommitOutcomes.committed = guessed  # type: ignore[method-assign] # the rule that is broken
    sys.exit(main())
