"""The parameters of the URL of a PostgreSQL database: used, without effect, or refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping

MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
DRIVER = frozenset(
    {
        "sslmode", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslpassword", "sslnegotiation",
        "ssl_min_protocol_version", "ssl_max_protocol_version", "passfile", "krbsrvname", "gsslib",
        "target_session_attrs",
    }
)  # fmt: skip
"""Parameters that the driver reads from a URL."""
UNUSED = frozenset(
    {
        "connect_timeout", "keepalives", "keepalives_idle", "keepalives_interval",
        "keepalives_count", "tcp_user_timeout", "gssencmode", "gssdelegation", "channel_binding",
        "sslsni", "sslcompression", "sslcertmode", "load_balance_hosts", "client_encoding",
        "application_name", "fallback_application_name", "sslkeylogfile", "min_protocol_version",
        "max_protocol_version",
    }
)  # fmt: skip
"""Parameters of libpq for which Carteiro has its own values, or its driver has none."""
_VERSIONS = ("TLSv1.2", "TLSv1.3")
_WORDS: Mapping[str, tuple[str, ...]] = {
    "sslmode": MODES, "sslnegotiation": ("postgres", "direct"), "gsslib": ("gssapi", "sspi"),
    "target_session_attrs": ("any", "read-write", "primary"),
    "ssl_min_protocol_version": _VERSIONS, "ssl_max_protocol_version": _VERSIONS,
}  # fmt: skip
_LEAVE = "leave it out"
_SIZE = "leave it out; the setting is database.pool_size"
_SCHEMA = "write options=-csearch_path%3Dname, or set the role's search_path"
_POOLER = "leave it out; behind a pooler set database.direct_url"
_TLS = "write sslmode, one of " + ", ".join(MODES)
_SECURITY = "leave it out; the driver cannot keep this promise"
REFUSED: Mapping[str, str] = {
    # Prisma
    "schema": _SCHEMA, "pgbouncer": _POOLER, "connection_limit": _SIZE, "pool_timeout": _LEAVE,
    "socket_timeout": _LEAVE, "statement_cache_size": _LEAVE, "sslaccept": _TLS,
    "sslidentity": "write sslcert and sslkey", "connectionlimit": _SIZE,
    # JDBC
    "currentschema": _SCHEMA, "preparethreshold": _LEAVE, "stringtype": _LEAVE,
    "logintimeout": _LEAVE, "sockettimeout": _LEAVE, "tcpkeepalive": _LEAVE, "sslfactory": _TLS,
    "applicationname": _LEAVE, "targetservertype": "write target_session_attrs=read-write",
    # SQLAlchemy, asyncpg, Django
    "prepared_statement_cache_size": _LEAVE, "async_fallback": _LEAVE, "max_overflow": _SIZE,
    "pool_size": _SIZE, "pool_pre_ping": _LEAVE, "pool_recycle": _LEAVE, "conn_max_age": _LEAVE,
    "unix_sock": "write host=/folder of the socket", "command_timeout": _LEAVE,
    "min_size": _SIZE, "max_size": _SIZE,
    # Rails, Node and Go
    "pool": _SIZE, "adapter": _LEAVE, "encoding": _LEAVE, "reconnect": _LEAVE, "timeout": _LEAVE,
    "prepared_statements": _LEAVE, "checkout_timeout": _LEAVE, "max": _SIZE,
    "uselibpqcompat": _LEAVE, "binary_parameters": _LEAVE, "pool_max_conns": _SIZE,
    "pool_min_conns": _SIZE, "pool_mode": _POOLER, "default_query_exec_mode": _LEAVE,
    "statement_cache_capacity": _LEAVE, "statement_cache_mode": _LEAVE,
    "supa": _LEAVE, "workaround": _LEAVE, "charset": _LEAVE, "serverversion": _LEAVE,
    # libpq
    "hostaddr": "write it in place of the host", "replication": _LEAVE, "requiressl": _TLS,
    "requirepeer": _SECURITY, "require_auth": _SECURITY, "sslcrldir": "write sslcrl",
    "service": "a service cannot name another one",
}  # fmt: skip
_NAME = re.compile("[A-Za-z_][A-Za-z0-9_.]{0,62}")


def checked(parameters: Mapping[str, str], *, secret: bool) -> dict[str, str]:
    """Return the parameters that Carteiro knows. Raise ValueError with the fix.

    `secret`: a password stands among them, so that any name may be a part of it.
    """
    known: dict[str, str] = {}
    for name, value in parameters.items():
        if name == "ssl":
            # JDBC and Node say true, SQLAlchemy one of the modes.
            value = {"true": "require", "false": "disable"}.get(value.lower(), value)
            known["sslmode"] = _one_of("ssl", value, MODES)
        elif name.lower() in REFUSED:
            raise ValueError(f"has the parameter {name}, unknown here; {REFUSED[name.lower()]}")
        elif name == "gssencmode" and value == "require":
            raise ValueError("has gssencmode=require; the driver cannot encrypt by GSSAPI, use TLS")
        elif not _NAME.fullmatch(name) or (secret and name not in DRIVER | UNUSED | {"options"}):
            raise ValueError("has an unknown parameter; write & in a value as %26")
        else:
            known[name] = value
    for name, words in _WORDS.items():
        if name in known:
            _one_of(name, known[name], words)
    return known


def _one_of(name: str, value: str, words: tuple[str, ...]) -> str:
    if value not in words:
        raise ValueError(f"has a wrong {name}; it must be one of {', '.join(words)}")
    return value
