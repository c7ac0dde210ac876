"""Read the URL of a PostgreSQL database as libpq does; no error repeats a part of it.

A setting that the URL leaves out comes from its service, then from the environment (`PGHOST` and
so on), as in psql.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from outbox.database.postgres_parameters import DRIVER, UNUSED, checked

SCHEMES = ("postgresql", "postgres")
PORT = 5432
_VARIABLES = {
    "PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password",
    "PGDATABASE": "dbname", "PGOPTIONS": "options", "PGPASSFILE": "passfile",
    "PGTARGETSESSIONATTRS": "target_session_attrs", "PGSSLMODE": "sslmode",
    "PGSSLNEGOTIATION": "sslnegotiation", "PGSSLCERT": "sslcert", "PGSSLKEY": "sslkey",
    "PGSSLROOTCERT": "sslrootcert", "PGSSLCRL": "sslcrl", "PGKRBSRVNAME": "krbsrvname",
    "PGSSLMINPROTOCOLVERSION": "ssl_min_protocol_version", "PGGSSLIB": "gsslib",
    "PGSSLMAXPROTOCOLVERSION": "ssl_max_protocol_version",
}  # fmt: skip
_BROKEN = re.compile("%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"[^\s/?#@:\[\]{}<>$%\"'\\,;()]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_UNREPLACED = re.compile(r"\$[({]\w+[)}]")
_RESERVED = "@/?#[]"
_ENCODE = "percent-encode these characters of the user, the password or a value: "


class Host(NamedTuple):
    """A host name or address, or the folder of a socket."""

    name: str
    port: int

    @property
    def is_socket(self) -> bool:
        return self.name.startswith("/")

    def __str__(self) -> str:
        if self.is_socket:
            return f"{self.name}/.s.PGSQL.{self.port}"
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


@dataclass(frozen=True, slots=True)
class PostgresUrl:
    """The settings of a connection. Without `hosts` the driver tries the usual local sockets."""

    hosts: tuple[Host, ...]
    port: int
    user: str
    password: str | None = field(repr=False)
    database: str
    driver: Mapping[str, str] = field(repr=False)
    """Parameters that the driver reads from a URL, such as sslmode."""
    settings: Mapping[str, str]
    """Settings of the server for each session."""
    unused: tuple[str, ...]
    """Parameters of libpq that change nothing here."""


def parse(url: str, environment: Mapping[str, str] = os.environ) -> PostgresUrl:
    """Return the settings of a URL. Raise ValueError with the fix, without a part of the URL."""
    parts = _split(url)
    parameters = {**_given(parts), **parts.parameters}
    service = parameters.pop("service", "") or environment.get("PGSERVICE", "")
    if service:
        parameters = {**_service(service, environment), **parameters}
    taken = {
        variable: name
        for variable, name in _VARIABLES.items()
        if name not in parameters
        and environment.get(variable)
        and not (name == "sslmode" and "ssl" in parameters)
    }
    parameters |= {name: environment[variable] for variable, name in taken.items()}
    if "host" not in parameters and "hostaddr" in parameters:
        parameters["host"] = parameters.pop("hostaddr")
    try:
        hosts, port = _hosts(parameters.pop("host", ""), parameters.pop("port", ""))
    except ValueError as error:
        raise _also(error, [name for name in ("PGHOST", "PGPORT") if name in taken]) from None
    user = parameters.pop("user", "") or _own_name()
    password = parameters.pop("password", None)
    database = parameters.pop("dbname", "") or user
    try:
        known = checked(parameters, secret="password" in parts.parameters)
    except ValueError as error:
        named = [
            parameter for parameter, name in taken.items() if re.search(rf"\b{name}\b", str(error))
        ]
        raise _also(error, named) from None
    return PostgresUrl(
        hosts=hosts,
        port=port,
        user=user,
        password=password,
        database=database,
        driver={name: value for name, value in known.items() if name in DRIVER},
        settings={name: value for name, value in known.items() if name not in DRIVER | UNUSED},
        unused=tuple(name for name in known if name in UNUSED),
    )


def _also(error: ValueError, variables: Sequence[str]) -> ValueError:
    """Return an error that names the variables which its cause may come from."""
    also = f"; also check {' and '.join(variables)}" if variables else ""
    return ValueError(f"{error}{also}")


def shown(url: str) -> str:
    """Return a URL without its password and its parameters; never raise."""
    scheme, _, rest = url.partition("://")
    try:
        given = _given(_split(url))
        _hosts(given.get("host", ""), given.get("port", ""))
    except ValueError:
        return "postgresql://…"
    place, at, after = rest.rpartition("@")
    return f"{scheme}://{place.partition(':')[0]}{at}{after.partition('?')[0]}"


class _Parts(NamedTuple):
    user: str
    password: str
    host: str
    database: str
    parameters: Mapping[str, str]


def _split(url: str) -> _Parts:
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        raise ValueError("must be postgresql://user@host:port/name")
    if _CONTROL.search(rest):
        raise ValueError(
            "has a line break or another control character inside; remove it, or percent-encode "
            "it: a line break as %0A"
        )
    if _UNREPLACED.search(rest):
        raise ValueError("has a variable that nobody replaced, such as ${NAME} or $(NAME)")
    before, _, after = rest.rpartition("@")
    wrong = [sign for sign in _RESERVED if sign in before]
    wrong += [sign for sign in "#" if sign in after and sign not in wrong]
    wrong += ["%"] * bool(_BROKEN.search(rest))
    if wrong:
        raise ValueError(_ENCODE + ", ".join(f"{sign} as %{ord(sign):02X}" for sign in wrong))
    place, _, query = after.partition("?")
    host, _, database = place.partition("/")
    user, _, password = before.partition(":")
    return _Parts(_text(user), _text(password), host, _text(database), _parameters(query))


def _given(parts: _Parts) -> dict[str, str]:
    """Return what stands before the parameters, under the names of parameters."""
    given = {
        "user": parts.user,
        "password": parts.password,
        "host": parts.host,
        "dbname": parts.database,
    }
    if parts.host.count(":") > 1 and _is_address(parts.host):
        raise ValueError("must have an IPv6 address in brackets, such as [::1]:5432")
    if parts.host.startswith(":") or "host" in parts.parameters:
        # The port of the host that the parameters name, or of the usual local socket.
        given |= {"host": "", "port": parts.host.rpartition(":")[2] if ":" in parts.host else ""}
    return {name: value for name, value in given.items() if value}


def _parameters(query: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    for field_ in filter(None, query.split("&")):
        name, equals, value = field_.partition("=")
        if not equals or not name:
            raise ValueError(
                "must have parameters of the form name=value after the ?, separated by &; "
                "write & in a value as %26"
            )
        name = {"database": "dbname"}.get(_text(name), _text(name))
        # The last one counts, and an empty one is absent.
        parameters.pop(name, None)
        if value:
            parameters[name] = value if name == "host" else _text(value)
    return parameters


def _text(encoded: str) -> str:
    try:
        text = unquote_to_bytes(encoded).decode()
    except UnicodeDecodeError:
        raise ValueError("must be percent-encoded as UTF-8, such as %C3%A9 for é") from None
    if "\0" in text:
        raise ValueError("must not contain %00")
    return text


def _hosts(hosts: str, ports: str) -> tuple[tuple[Host, ...], int]:
    """Return the hosts of a list, and the port where the list is empty."""
    given = [_port(port) for port in ports.split(",")] if ports else []
    if not hosts:
        if len(given) > 1:
            raise ValueError("has several ports and no host; give each port a host")
        return (), (given or [PORT])[0]
    named = [_host(each.strip()) for each in hosts.split(",")]
    if len(given) > 1 and len(given) != len(named):
        raise ValueError(
            f"has {len(given)} ports for {len(named)} hosts; give one port for all, or one for each"
        )
    if given:
        ports_of = given * len(named) if len(given) == 1 else given
        return tuple(map(Host, (name for name, _ in named), ports_of)), PORT
    return tuple(Host(name, own or PORT) for name, own in named), PORT


def _host(text: str) -> tuple[str, int | None]:
    if text.startswith("/") or text.lower().startswith("%2f"):
        return _text(text), None
    if _is_address(text):
        return text, None
    if text.startswith("["):
        name, _, port = text[1:].partition("]")
        good = _is_address(name := _text(name))
    else:
        name, colon, port = text.partition(":")
        good = _HOST.fullmatch(name := _text(name)) is not None
        port = f"{colon}{port}"
    if not good:
        raise ValueError(
            "must have a host name or an address between @ and the next /, such as "
            "postgresql://user@db.example.com:5432/name or postgresql://user@[::1]/name"
        )
    return name, _port(port.removeprefix(":")) if port.strip(":") else None


def _is_address(text: str) -> bool:
    """Return whether a text is an IPv6 address without brackets."""
    try:
        return ":" in text and bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) <= 65_535):
        raise ValueError("must have ports that are numbers from 1 to 65535")
    return int(text)


def _own_name() -> str:
    """Return the name of this process's user, which a container may not have."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        raise ValueError("must name a user: postgresql://user@host:port/name") from None


def _service(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a service of libpq."""
    import configparser

    named = environment.get("PGSERVICEFILE")
    folder = environment.get("PGSYSCONFDIR")
    files = [Path(named)] if named else [Path(environment.get("HOME", "~"), ".pg_service.conf")]
    files += [Path(folder, "pg_service.conf")] if folder else []
    for file in files:
        reader = configparser.ConfigParser(interpolation=None)
        try:
            reader.read_string(file.read_text(encoding="utf-8"))
        except OSError:
            continue
        except (configparser.Error, ValueError):
            raise ValueError(f"names a service, and the file of services {file} is wrong") from None
        if name in reader:
            return {{"database": "dbname"}.get(key, key): value
                    for key, value in reader[name].items() if value}  # fmt: skip
    raise ValueError(
        f"names a service that is not in {' or '.join(map(str, files))}; add it, or write host, "
        "user and name into the URL"
    )
