"""What the server says when it forbids a change of the schema, as one line with the mend."""

from __future__ import annotations

import asyncpg

FORBIDDEN = (
    asyncpg.InsufficientPrivilegeError, asyncpg.InvalidSchemaNameError,
    asyncpg.ReadOnlySQLTransactionError,
)  # fmt: skip
"""Errors of a change of the schema that only the operator can mend."""


def not_migrated(error: BaseException) -> str:
    """Return why the schema cannot be brought up to date."""
    said = " ".join(str(error).split())
    return (
        f"the schema needs a change that this role may not make ({said}); run `carteiro migrate` "
        "once with the role that owns the tables, or let that owner or an administrator give "
        "them to this role: alter table … owner to ROLE"
    )
