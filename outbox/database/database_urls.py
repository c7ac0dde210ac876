"""The forms of `database.url`: which engine it names, and the file of an SQLite database."""

from __future__ import annotations

import os
import re
from pathlib import Path

from outbox.database import postgres_url

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
EXAMPLES = (
    "must be sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host:port/name"
)
_DRIVEN = re.compile(r"(sqlite|postgres(?:ql)?)[+.][a-z0-9_]+:", re.IGNORECASE)
_DRIVE = re.compile(r"/*[A-Za-z]:[\\/]|.*\\")
_PARAMETERS = re.compile(r"\?[A-Za-z_]+=")


def is_sqlite(url: str) -> bool:
    """Return whether a right URL names an SQLite file."""
    return url.startswith(SQLITE)


def normal(url: str) -> str:
    """Return a URL in its normal spelling. Raise ValueError with the fix, without a secret."""
    scheme, colon, rest = url.partition(":")
    url = f"{scheme.lower()}{colon}{rest}"
    if url.startswith(SQLITE):
        _must_be_file(url.removeprefix(SQLITE))
    elif url.startswith(POSTGRES):
        postgres_url.parse(url)
    else:
        raise ValueError(_hint(url))
    return url


def postgres(url: str) -> str:
    """Return a URL of PostgreSQL like `normal`. Raise ValueError for any other."""
    url = normal(url)
    if is_sqlite(url):
        raise ValueError("must be postgresql://user@host:port/name")
    return url


def without_password(url: str) -> str:
    """Return the URL of a database as it may be shown."""
    return url if is_sqlite(url) else postgres_url.shown(url)


def typed_file(url: str) -> Path:
    """Return the path of an SQLite URL as it was typed, perhaps a symbolic link."""
    return Path(url.removeprefix(SQLITE))


def sqlite_file(url: str) -> Path:
    """Return the file of an SQLite URL: behind symbolic links, it is the file that they name."""
    return resolved(typed_file(url))


def resolved(name: str | Path) -> Path:
    """Return the path behind symbolic links; without any, the path as it was typed."""
    real = os.path.realpath(name)
    return Path(name) if real == os.path.abspath(name) else Path(real)


def _must_be_file(name: str) -> None:
    if name.startswith((":memory:", "file:")) or not name.strip("/"):
        raise ValueError(
            "must name a file, such as sqlite:///data/carteiro.db; a database in memory would end "
            "with the process"
        )
    if _DRIVE.match(name):
        raise ValueError("must be a path with /, such as sqlite:////srv/carteiro/carteiro.db")
    if name.startswith("~"):
        raise ValueError("must be a whole path; ~ is not replaced by the home folder")
    if name.endswith("/"):
        raise ValueError("must name a file, not a folder; add its name, such as carteiro.db")
    if _PARAMETERS.search(name):
        raise ValueError("must be a path without parameters; leave out the ? and what follows")
    if "\0" in name:
        raise ValueError(EXAMPLES)


def _hint(url: str) -> str:
    """Return the fix of a URL that is neither SQLite's nor PostgreSQL's, without a part of it."""
    if url.startswith("file:") or ":memory:" in url or url in ("sqlite:", "sqlite://"):
        return "must name a file, such as sqlite:///data/carteiro.db"
    if url.startswith("sqlite"):
        return (
            "must have three slashes before a relative path, sqlite:///data/carteiro.db, and four "
            "before an absolute one, sqlite:////srv/carteiro.db"
            if not _DRIVEN.match(url)
            else "must begin with sqlite:///, without the name of a driver"
        )
    if _DRIVEN.match(url):
        return "must begin with postgresql://, without the name of a driver"
    if url.startswith("jdbc:"):
        return "must begin with postgresql://, without jdbc:, with the user and password before @"
    if re.match(r"postgres(ql)?:", url):
        return "must begin with postgresql://, with two slashes"
    if re.search(r"(^|[\s;])(host|dbname|server|user)\s*=", url, re.IGNORECASE):
        return "must be a URL, postgresql://user@host:port/name, not a list of name=value"
    if url.startswith(("psql ", "mysql", "mariadb", "mssql", "mongodb", "cockroach", "redis")):
        return f"{EXAMPLES}; other databases are not supported"
    return EXAMPLES
