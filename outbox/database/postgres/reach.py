"""Say why a connection fails: the cause by its name, and the fix.

Only a host that does not answer is one that cannot be reached. What a server says is told apart by
the class of the error: servers speak many languages.
"""

from __future__ import annotations

import errno
import re
import shlex
import socket
import ssl

import asyncpg

from outbox.database.postgres.faults import is_full
from outbox.database.postgres.first_session import quoted
from outbox.database.postgres.hosts import CONNECT_SECONDS, Hosts, has_no_tls
from outbox.database.postgres.tls import UnusableSettings
from outbox.database.postgres_url import Host, PostgresUrl
from outbox.errors import CannotStart

_UNREACHED = "cannot reach PostgreSQL: "
_NUMBER = re.compile(r"\[Errno (\d+)\]")
_UNANSWERED = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT, errno.EHOSTDOWN}


def refusal(error: BaseException, hosts: Hosts) -> CannotStart:
    """Return the refusal of a start for an error of Hosts.connect, or of what followed it."""
    setting = hosts.setting
    failed = hosts.failed if error in hosts.failed.values() else {}
    if len(failed) > 1 and all(
        isinstance(each, OSError) and not isinstance(each, UnusableSettings)
        for each in failed.values()
    ):
        # Each host has its own cause.
        told = "; ".join(
            _sentence(each, _named(host), hosts.url, setting).removeprefix(_UNREACHED)
            for host, each in failed.items()
        )
        return CannotStart(_UNREACHED + told)
    where = next((_named(host) for host, each in failed.items() if each is error), "PostgreSQL")
    return CannotStart(_sentence(error, where, hosts.url, setting))


def _named(host: Host | None) -> str:
    return "a usual local socket or localhost" if host is None else str(host)


def _sentence(error: BaseException, where: str, url: PostgresUrl, setting: str) -> str:
    if isinstance(error, UnusableSettings):
        return f"{setting}: {error}"
    if isinstance(error, asyncpg.ConnectionDoesNotExistError):
        return _hung_up(where, setting)
    if isinstance(error, asyncpg.PostgresError):
        return _answered(error, where, url, setting)
    if isinstance(error, socket.gaierror | UnicodeError):
        name = where.rpartition(":")[0] or where
        why = error.strerror if isinstance(error, OSError) else "no name of DNS"
        return (
            f"{_UNREACHED}the host {name} is not found ({why}); correct the host in {setting}, or "
            "the DNS of this machine"
        )
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"the TLS of {where} fails: its certificate proves nothing ({error.verify_message}); "
            f"set sslrootcert in {setting} to that of its authority, and use the name that it is "
            "made for"
        )
    if isinstance(error, ssl.SSLError):
        return f"the TLS of {where} fails: {error.reason or error}; check sslmode in {setting}"
    if has_no_tls(error):
        return (
            f"{where} takes no TLS, which sslmode in {setting} asks for; switch ssl on at the "
            "server, or use sslmode=prefer"
        )
    if isinstance(error, TimeoutError) and not getattr(error, "errno", None):
        return (
            f"{_UNREACHED}{where} does not answer within {CONNECT_SECONDS:g} seconds; check host "
            f"and port in {setting}, and the firewall between"
        )
    if isinstance(error, OSError):
        return _not_connected(error, where, setting)
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return (
            "no host is writable, as target_session_attrs asks for: all are standbys, or "
            f"read-only; promote one, or give {setting} all hosts"
        )
    if isinstance(error, asyncpg.InterfaceError) and "password" in str(error):
        return (
            f"{where} asks for a password of the user {url.user} and there is none; write it into "
            f"{setting}, as postgresql://user:password@host/name"
        )
    return (
        f"{where} does not answer like PostgreSQL ({str(error) or type(error).__name__}); check "
        f"host and port in {setting}"
    )


def _hung_up(where: str, setting: str) -> str:
    return (
        f"{where} closes the connection at once; check that PostgreSQL, not another program, "
        f"listens at host and port of {setting}"
    )


def _not_connected(error: OSError, where: str, setting: str) -> str:
    # With several addresses of a host, only the text has their numbers.
    numbers = {int(number) for number in _NUMBER.findall(str(error))} | {error.errno}
    if errno.ECONNREFUSED in numbers:
        return (
            f"{_UNREACHED}nothing listens at {where} (connection refused); start the server, or "
            f"correct host and port in {setting}"
        )
    if numbers & _UNANSWERED:
        return (
            f"{_UNREACHED}there is no route to {where}; check the host in {setting}, and the "
            "network"
        )
    if isinstance(error, ConnectionError):
        return _hung_up(where, setting)
    if error.filename is None and errno.ENOENT in numbers:
        return (
            f"{_UNREACHED}there is no socket {where}; start the server, or correct host in "
            f"{setting}"
        )
    if error.filename is None and numbers & {errno.EACCES, errno.EPERM}:
        return f"no permission to use {where}; run as a user that may, or use host=localhost"
    if error.filename is not None:
        return f"cannot read {error.filename}: {error.strerror}; {setting} needs it"
    return f"{_UNREACHED}{where}: {error.strerror or error}; check {setting}"


def _answered(error: asyncpg.PostgresError, where: str, url: PostgresUrl, setting: str) -> str:
    """Return a sentence about what the server says, which is in the server's language."""
    said = " ".join(str(error).split())
    user, database = url.user, url.database
    if is_full(error):
        return (
            f"{where} has no free connection ({said}); end other sessions, lower "
            "database.pool_size, or raise the limit: max_connections, or `alter role … connection "
            "limit`"
        )
    if isinstance(error, asyncpg.InvalidPasswordError):
        given = "is wrong" if url.password is not None else "is missing"
        return (
            f"{where} refuses the user {user}: the password {given}; correct it in {setting} "
            "(in an environment, PGPASSWORD)"
        )
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        options = f"--encoding=UTF8 --owner={shlex.quote(user)}"
        return (
            f"there is no database {database} at {where}; create it as an administrator with "
            f"`createdb {options} {shlex.quote(database)}`, or correct {setting}"
        )
    if isinstance(error, asyncpg.InsufficientPrivilegeError):
        return (
            f"{where} refuses the user {user} ({said}); let the owner of the database or an "
            f"administrator run: grant connect on database {quoted(database)} to {quoted(user)}"
        )
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
        tls = " (sslmode=require turns TLS on)" if url.driver.get("sslmode") != "require" else ""
        return (
            f"{where} refuses the user {user} ({said}); it needs LOGIN and a line in pg_hba.conf "
            f"for this address, with TLS as it is{tls}; else correct the user in {setting}"
        )
    if isinstance(error, asyncpg.CannotConnectNowError):
        return f"{where} is starting or stopping ({said}); try again when it is ready"
    if isinstance(error, asyncpg.ProtocolViolationError | asyncpg.FeatureNotSupportedError):
        if "parameter" in said:
            return (
                f"a pooler at {where} refuses the connection ({said}); leave the parameter out of "
                f"{setting} and set it by `alter role … set`, or set database.direct_url to the "
                "URL of PostgreSQL itself"
            )
        return f"a pooler at {where} refuses the connection ({said}); check {setting}"
    if isinstance(error, asyncpg.UndefinedObjectError | asyncpg.CantChangeRuntimeParamError):
        return f"{where}: {said}; leave this parameter out of {setting}"
    if isinstance(error, asyncpg.InvalidParameterValueError):
        return f"{where}: {said}; correct this parameter in {setting}"
    return f"{where} refuses the connection ({said}); check {setting}"
