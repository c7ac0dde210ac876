"""What the server says when it lets nobody in or forbids a change, as one line with the mend."""

from __future__ import annotations

import ssl

import asyncpg

from outbox.database.postgres.faults import is_full
from outbox.database.postgres.tls import UnusableSettings

FORBIDDEN = (
    asyncpg.InsufficientPrivilegeError, asyncpg.InvalidSchemaNameError,
    asyncpg.ReadOnlySQLTransactionError,
)  # fmt: skip
"""Errors of a change of the schema that only the operator can mend."""


def not_connected(error: BaseException, setting: str) -> str:
    """Return why there is no connection to the URL of `setting`.

    By the class of the error: servers speak many languages.
    """
    said = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, UnusableSettings):
        return f"{setting}: {said}"
    if is_full(error):
        return (
            f"PostgreSQL has no free connection ({said}); end other sessions, or raise the limit: "
            "max_connections, or `alter role … connection limit`"
        )
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return (
            f"PostgreSQL has no such database ({said}); create it as an administrator, by "
            f"`createdb --owner=ROLE NAME`, or correct {setting}"
        )
    if isinstance(error, asyncpg.InvalidPasswordError):
        return f"PostgreSQL refuses the password ({said}); correct {setting}"
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return (
            f"PostgreSQL refuses the role ({said}); let the owner of the database or an "
            "administrator run: grant connect on database NAME to ROLE"
        )
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
        return (
            f"PostgreSQL refuses the role ({said}); it needs LOGIN and a line in pg_hba.conf for "
            f"this address and for TLS as it is; else correct {setting}"
        )
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return (
            "no host is what target_session_attrs asks for: all are standbys, or read-only; "
            f"promote one, or correct {setting}"
        )
    if isinstance(error, asyncpg.ProtocolViolationError | asyncpg.FeatureNotSupportedError):
        return (
            f"a pooler refuses the connection ({said}); leave the parameter out of {setting}, and "
            "set it by `alter role … set`; or set database.direct_url to the URL of PostgreSQL"
        )
    if isinstance(error, asyncpg.PostgresError):
        return f"PostgreSQL refuses the connection ({said}); check {setting}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the certificate of PostgreSQL proves nothing ({error.verify_message}); set "
            f"sslrootcert in {setting} to that of its authority, and use the name it is made for"
        )
    if isinstance(error, ConnectionError) and "rejected SSL upgrade" in said:
        return f"PostgreSQL takes no TLS here; turn it on there, or change sslmode in {setting}"
    return f"cannot reach PostgreSQL: {said}; check {setting} and that the server is running"


def not_migrated(error: BaseException) -> str:
    """Return why the schema cannot be brought up to date."""
    said = " ".join(str(error).split())
    return (
        f"the schema needs a change that this role may not make ({said}); run `carteiro migrate` "
        "once with the role that owns the tables, or let that owner or an administrator give "
        "them to this role: alter table … owner to ROLE"
    )
