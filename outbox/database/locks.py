"""Names the advisory locks of PostgreSQL, so that no two of them share a number.

A number stands in a statement as `own_lock(…)` or `schema_lock(…)` (see outbox.database.sql), so
that each schema has locks of its own. The numbers are those of released nodes and never change.
"""

SCHEMA = 7201964
"""Whoever changes the tables, or reads or fills all of them."""
FAN_OUT = 7201965
"""The node that fans events out; shared by whoever changes webhooks."""
LEADER = 7201966
NODES = 7201967
"""The class of the locks that nodes hold while they run."""
SIGNING_KEYS = 7201968
MOVE = 7201969
"""The command that moves an owner."""
CELL_NAMES = 7201970

# The seeds of locks by text, such as an owner's id.
CONTACT_KEYS = 0
WEBHOOKS_OF = 7
CHECKPOINTS_OF = 8
JOBS_OF = 9
UNPAID_OF = 18


def held(lock: int, *, shared: bool = False) -> str:
    """Return the statement that waits for a lock until the end of the transaction.

    SQLite has one writer, and so needs none.
    """
    name = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
    return f"select /*sqlite true*/ /*postgres {name}(own_lock({lock}))*/ as held"


def held_of(seed: int) -> str:
    """Return the same for the lock of the text $1."""
    return f"select /*sqlite $1*/ /*postgres pg_advisory_xact_lock(hashtextextended($1, {seed}))*/"
