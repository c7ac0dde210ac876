"""Checks of configuration values beyond their types; each raises ValueError with the fix."""

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from gateway.server.web_origins import normal
from outbox.database import database_urls
from outbox.sending.addresses import parse_place
from outbox.sending.proxies import Proxy, parse_proxy
from outbox.sending.request import check_header
from outbox.sending.trust import must_be_authorities

BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
MAILBOX = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*", re.ASCII)


def _networks(values: Sequence[str]) -> None:
    for value in values:
        try:
            ipaddress.ip_network(value)
        except ValueError as error:
            raise ValueError(f"{value!r} is not a network such as 10.0.0.0/8: {error}") from None


def _places(values: Sequence[str]) -> None:
    for value in values:
        parse_place(value)


def _proxies(values: Sequence[str]) -> None:
    named_proxies(values)


def named_proxies(values: Sequence[str]) -> Mapping[str, Proxy]:
    """Return the proxies of texts `name=URL` by name. Raise ValueError, without a password."""
    named: dict[str, Proxy] = {}
    for number, value in enumerate(values, start=1):
        name, equals, url = (part.strip() for part in value.partition("="))
        if not equals:
            raise ValueError(f"entry {number} must be name=http://user:password@host:port")
        if name in named:
            raise ValueError(f"the name {name[:40]!r} appears twice")
        named[name] = parse_proxy(name, url)
    return named


def _authorities(value: str) -> None:
    if value:
        must_be_authorities(value)


def _line(value: str) -> None:
    if any(not sign.isprintable() for sign in value):
        raise ValueError("must be one line of text, without control characters")


def _postgres_url(value: str) -> str:
    return database_urls.postgres(value) if value else ""


def _host(value: str) -> str:
    """Return an address to listen on as the system reads it."""
    host = value.strip()
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host:
        raise ValueError(
            'must be an address or a name, such as 127.0.0.1; for all interfaces "0.0.0.0" or "::"'
        )
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if set(host) & set(":/[]@ "):
            raise ValueError(
                "must be an address or a name alone, such as 0.0.0.0, :: or localhost; the port "
                "is server.port"
            ) from None
    return host


def _public_url(value: str) -> str:
    return normal(value) if value else ""


def _origins(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(normal, values)))


def _mailbox(value: str) -> None:
    if value and MAILBOX.fullmatch(value) is None:
        raise ValueError("must be an address such as shop@example.com")


def _collector(value: str) -> str:
    """Return the URL of a trace collector, with OTLP's usual path when it has none."""
    if not value:
        return value
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be a URL such as http://127.0.0.1:4318/v1/traces, or empty")
    return value if parts.path.strip("/") else f"{parts.scheme}://{parts.netloc}/v1/traces"


def _bucket(value: str) -> None:
    if value and BUCKET.fullmatch(value) is None:
        raise ValueError("must be 3 to 63 lowercase letters, digits, dots and hyphens, or empty")


def _endpoint(value: str) -> str:
    """Return the URL of an S3 server without a final slash."""
    parts = urlsplit(value)
    if not value:
        return value
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be a URL such as https://s3.us-east-1.amazonaws.com, or empty")
    return value.rstrip("/")


def _headers(values: Sequence[str]) -> None:
    for value in values:
        name, colon, text = value.partition(":")
        try:
            check_header(name.strip(), text.strip())
        except ValueError:
            # The value is a secret, so the message must not contain it.
            raise ValueError('each must be "Name: value", such as "X-Team: carteiro"') from None
        if not colon:
            raise ValueError('each must be "Name: value", such as "X-Team: carteiro"')


def _apps(apps: Sequence[Any]) -> None:
    """Check where apps may be: codes and events go only there."""
    seen: set[str] = set()
    for app in apps:
        if app.id in seen:
            raise ValueError(f"two apps have the id {app.id!r}")
        seen.add(app.id)
        for uri in app.redirect_uris:
            if not _redirect(uri):
                raise ValueError(
                    f"{uri!r} of {app.id!r} must be an https URL without a fragment, such as "
                    "https://app.example.com/connected; http only on 127.0.0.1, [::1] or localhost"
                )
        for origin in app.receivers:
            if normal(origin) != origin:
                raise ValueError(f"write {origin!r} of {app.id!r} as {normal(origin)!r}")


def _peers(peers: Sequence[Any]) -> None:
    seen: set[str] = set()
    for peer in peers:
        if peer.name in seen:
            raise ValueError(f"two cells have the name {peer.name!r}")
        seen.add(peer.name)
        if normal(peer.url) != peer.url:
            raise ValueError(f"write {peer.url!r} of {peer.name!r} as {normal(peer.url)!r}")


def _redirect(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
        origin = normal(f"{parts.scheme}://{parts.netloc}")
    except ValueError:
        return False
    plain = uri.isascii() and uri.isprintable() and not set(uri) & set(' #\\"<>^`{|}')
    local = host in ("127.0.0.1", "::1", "localhost")
    scheme = parts.scheme == "https" or (parts.scheme == "http" and local)
    return plain and scheme and uri.startswith(f"{origin}/") and "@" not in parts.netloc


def together(sections: Mapping[str, Any]) -> list[str]:
    """Return the faults of keys that need each other."""
    faults = []
    mail = sections["mail"]
    if mail.host and not mail.from_address:
        faults.append("mail.from_address: must be set when mail.host is set")
    if "/" in mail.host or mail.host.count(":") == 1:
        faults.append(f"mail.host: {mail.host!r} must be a host only; the port is mail.port")
    images = sections["images"]
    if images.s3_endpoint:
        faults += [
            f"images.{key}: must be set when images.s3_endpoint is set"
            for key in ("s3_bucket", "s3_access_key", "s3_secret_key")
            if not getattr(images, key)
        ]
        if images.folder:
            faults.append("images.folder: must be empty when images.s3_endpoint is set")
    limits = sections["limits"]
    if 0 < limits.checkouts_per_hour < limits.checkouts_per_minute:
        faults.append(
            "limits.checkouts_per_hour: must be at least limits.checkouts_per_minute, or 0 for no "
            "limit"
        )
    if sections["server"].processes > 1 and not sections["database"].url.startswith(
        database_urls.POSTGRES
    ):
        faults.append(
            "server.processes: must be 1 on SQLite, which one process serves; set it to 1, or set "
            "database.url to a PostgreSQL database"
        )
    return faults + _cell_faults(sections["cell"], sections["database"].url)


def _cell_faults(cell: Any, url: str) -> list[str]:
    if not cell.name:
        keys = [key for key in ("peers", "directory") if getattr(cell, key)]
        return [f"cell.{key}: needs cell.name, the name of this cell" for key in keys]
    faults = []
    if not url.startswith(database_urls.POSTGRES):
        faults.append(
            "cell.name: a cell needs PostgreSQL; set database.url to a PostgreSQL database, or "
            "leave cell.name empty"
        )
    if cell.peers and not cell.directory:
        faults.append(
            "cell.directory: must be set when cell.peers is set; all cells share one directory"
        )
    return faults


def _name_servers(values: Sequence[str]) -> None:
    for value in values:
        host, colon, port = value.rpartition(":")
        try:
            ipaddress.ip_address(host.strip("[]"))
            if not colon or not 0 < int(port) < 65_536:
                raise ValueError
        except ValueError:
            raise ValueError(
                f"{value!r} is not an address with a port, such as 9.9.9.9:53"
            ) from None


CHECKS: Mapping[str, Callable[[Any], None]] = {
    "server.trusted_proxies": _networks,
    "cell.peers": _peers,
    "connect.apps": _apps,
    "egress.allow": _places,
    "egress.proxies": _proxies,
    "egress.ca_file": _authorities,
    "metrics.allow": _networks,
    "storefront.name_servers": _name_servers,
    "mail.from_address": _mailbox,
    "images.s3_access_key": _line,
    "images.s3_bucket": _bucket,
    "images.s3_region": _line,
    "images.s3_secret_key": _line,
    "mail.password": _line,
    "metrics.token": _line,
    "tracing.headers": _headers,
}

NORMAL: Mapping[str, Callable[[Any], Any]] = {
    "server.host": _host,
    "server.public_url": _public_url,
    "database.url": database_urls.normal,
    "database.direct_url": _postgres_url,
    "cell.directory": _postgres_url,
    "server.cors_origins": _origins,
    "tracing.endpoint": _collector,
    "images.s3_endpoint": _endpoint,
}
"""Checks of values that have several spellings; each returns the normal spelling."""
