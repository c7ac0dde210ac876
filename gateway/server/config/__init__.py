"""The configuration: every key with its type and default; reads files and environment.

The order of precedence: the environment (`CARTEIRO_SERVER__PORT=80`), the installation's file
(`config.local.toml`), `config.toml`, the defaults below, which equal those of config.toml. A secret
may also be given as `…_FILE`, the path of a file with the value, which wins over the variable that
an image or a unit has as its default. config.toml documents each key.
It is one module because an operator looks for every key and its default in one place.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from gateway.domain.cells.credential_suffix import NAME
from gateway.server.config import fault_texts, source_texts
from gateway.server.config.value_checks import CHECKS, NORMAL, together
from outbox.queue.state.evidence import MOST_EVENTS

PREFIX = "CARTEIRO_"
FILE_VARIABLE = "CARTEIRO_CONFIG"
FILES = ("config.toml", "config.local.toml")
"""The files to read when none is named: documented defaults and the installation's settings."""

Words = tuple[str, ...]
Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Port = Annotated[int, Meta(ge=0, le=65_535)]

LOOPBACK = ("127.0.0.0/8", "::1/128")
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")


class Service(Struct, frozen=True):
    name: Annotated[
        str,
        Meta(
            pattern=r"\A[A-Za-z][A-Za-z0-9_-]{0,39}\Z",
            description="1 to 40 letters, digits, - and _, a letter first",
        ),
    ] = "Carteiro"


class Server(Struct, frozen=True):
    host: str = "127.0.0.1"
    port: Port = 8080
    public_url: str = ""
    trusted_proxies: Words = LOOPBACK
    cors_origins: Words = ()
    processes: Annotated[int, Meta(ge=1, le=64)] = 1
    shutdown_seconds: Annotated[float, Meta(ge=1, le=300)] = 15.0


class Database(Struct, frozen=True):
    url: str = "sqlite:///data/carteiro.db"
    direct_url: str = ""
    synchronous: Literal["full", "normal"] = "full"
    synchronous_commit: Literal["on", "remote_apply", "remote_write", "local"] = "on"
    pool_size: Annotated[int, Meta(ge=2, le=200)] = 10
    disk_bytes: Count = 0


class Secrets(Struct, frozen=True):
    key_file: str = ""
    keys: str = ""


class Delivery(Struct, frozen=True):
    slots: Annotated[int, Meta(ge=1, le=10_000)] = 256
    total_seconds: Annotated[float, Meta(ge=1, le=30)] = 15.0
    disable_attempts: Annotated[int, Meta(ge=1, le=1_000_000)] = 10
    disable_events: Annotated[int, Meta(ge=1, le=MOST_EVENTS)] = 3


class Retry(Struct, frozen=True):
    schedule: Annotated[
        tuple[Annotated[float, Meta(ge=0, le=2_592_000)], ...], Meta(max_length=50)
    ] = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)


class Egress(Struct, frozen=True):
    allow_http: bool = False
    allow: Words = ()
    proxies: Words = ()
    resolve: Literal["here", "proxy"] = "here"
    ca_file: str = ""
    connection_seconds: Annotated[float, Meta(ge=1, le=3_600)] = 60.0


class Limits(Struct, frozen=True):
    body_bytes: Positive = 1_048_576
    url_bytes: Positive = 8_192
    header_seconds: Seconds = 10.0
    body_seconds: Seconds = 30.0
    least_bytes_per_second: Count = 500
    keep_alive_seconds: Seconds = 75.0
    request_bytes: Positive = 67_108_864
    answer_bytes: Positive = 134_217_728
    connections: Positive = 1_000
    connections_per_address: Positive = 500
    read_per_second: Count = 100
    write_per_second: Count = 50
    pages_per_second: Count = 20
    burst: Positive = 4
    sign_in_per_minute: Count = 10
    storefront_per_minute: Count = 300
    forms_per_minute: Count = 10
    checkouts_per_minute: Count = 10
    checkouts_per_hour: Count = 60
    unpaid_orders_per_email: Count = 5
    unpaid_orders_per_address: Count = 20
    reserved_items: Count = 10
    reserved_percent: Annotated[int, Meta(ge=0, le=100)] = 10
    carts_per_day: Count = 100
    searched_rows_per_minute: Count = 1_000_000
    password_tries: Count = 30
    webhooks_per_owner: Count = 50
    keys_per_owner: Count = 50
    images_per_owner: Count = 10_000
    image_bytes_per_owner: Count = 2_147_483_648


class Auth(Struct, frozen=True):
    signup: Literal["closed", "open"] = "closed"
    token_hours: Annotated[int, Meta(ge=1, le=720)] = 12
    require_two_factor: bool = False


class Storefront(Struct, frozen=True):
    graphiql: bool = True
    order_days: Annotated[int, Meta(ge=1, le=365)] = 3
    verify_hostnames: bool = False
    name_servers: Words = ()


class Images(Struct, frozen=True):
    folder: str = ""
    s3_endpoint: str = ""
    s3_bucket: str = ""
    s3_region: str = "us-east-1"
    s3_access_key: str = ""
    s3_secret_key: str = ""


class Console(Struct, frozen=True):
    session_hours: Annotated[int, Meta(ge=1, le=8_760)] = 336


class App(Struct, frozen=True, forbid_unknown_fields=True):
    """An app that may ask owners for a webhook by a connect link."""

    id: Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9._-]{0,62}\Z")]
    name: Annotated[str, Meta(min_length=1, max_length=60)]
    redirect_uris: Annotated[Words, Meta(min_length=1, max_length=20)]
    receivers: Annotated[Words, Meta(min_length=1, max_length=50)]
    """The origins of its receivers."""


class Connect(Struct, frozen=True):
    apps: Annotated[
        tuple[App, ...],
        Meta(
            description="a list of apps, each { id, name, redirect_uris, receivers }; an id has "
            "lowercase letters, digits, dots, hyphens and underscores"
        ),
    ] = ()


class Peer(Struct, frozen=True, forbid_unknown_fields=True):
    """Another cell."""

    name: Annotated[str, Meta(pattern=rf"\A{NAME}\Z")]
    url: str
    config: str = ""
    """The path of its configuration file, for commands."""


class Cell(Struct, frozen=True):
    name: Annotated[
        str,
        Meta(
            pattern=rf"\A({NAME})?\Z",
            description="1 to 16 lowercase letters, digits and hyphens, a letter first; or empty",
        ),
    ] = ""
    peers: Annotated[
        tuple[Peer, ...],
        Meta(description="a list of the other cells, each { name, url } and config for commands"),
    ] = ()
    directory: str = ""


class Metrics(Struct, frozen=True):
    allow: Words = LOOPBACK + PRIVATE
    hosts: Words = ()
    token: str = ""
    webhook_series: Annotated[int, Meta(ge=0, le=10_000)] = 500


class Retention(Struct, frozen=True):
    deliveries_days: Annotated[int, Meta(ge=1, le=3_650)] = 30
    events_days: Annotated[int, Meta(ge=1, le=3_650)] = 30
    audit_days: Annotated[int, Meta(ge=1, le=3_650)] = 90


class Logging(Struct, frozen=True):
    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "json", "text"] = "auto"
    deliveries_per_second: Count = 1_000


class Tracing(Struct, frozen=True):
    accept: bool = True
    endpoint: str = ""
    headers: Words = ()
    sample: Annotated[float, Meta(ge=0, le=1)] = 1.0


class Mail(Struct, frozen=True):
    host: str = ""
    port: Port = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: str = ""
    password: str = ""
    from_address: str = ""
    timeout_seconds: Annotated[float, Meta(ge=1, le=120)] = 10.0


class Config(Struct, frozen=True):
    """All sections, under the names of their headings in config.toml."""

    service: Service = Service()
    server: Server = Server()
    database: Database = Database()
    secrets: Secrets = Secrets()
    delivery: Delivery = Delivery()
    retry: Retry = Retry()
    egress: Egress = Egress()
    limits: Limits = Limits()
    auth: Auth = Auth()
    storefront: Storefront = Storefront()
    images: Images = Images()
    console: Console = Console()
    connect: Connect = Connect()
    cell: Cell = Cell()
    metrics: Metrics = Metrics()
    retention: Retention = Retention()
    logging: Logging = Logging()
    tracing: Tracing = Tracing()
    mail: Mail = Mail()


SECTIONS: Mapping[str, type[Struct]] = get_type_hints(Config)
SECRET_KEYS = frozenset(
    {
        "cell.directory", "database.url", "database.direct_url", "egress.proxies",
        "images.s3_secret_key", "metrics.token", "mail.password", "tracing.headers",
    }
)  # fmt: skip
"""Keys that may also be given as `CARTEIRO_SECTION__KEY_FILE`."""
HIDDEN = SECRET_KEYS | {"secrets.keys"}
"""Keys whose values no fault shows."""


class ConfigFaults(Exception):
    """An invalid configuration; `faults` lists all errors, a line each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def load(path: Path | None, env: Mapping[str, str], local: Path | None = None) -> Config:
    """Read the file, the `local` file that overrides it, and the environment.

    Raise ConfigFaults with all faults.
    """
    faults: list[str] = []
    entries = _from_file(path, faults) if path else {}
    entries |= _from_file(local, faults) if local else {}
    entries |= _from_environment(env, faults)
    sections: dict[str, Any] = {}
    for section, kind in SECTIONS.items():
        keys = get_type_hints(kind, include_extras=True)
        values = {}
        for key, hint in keys.items():
            name = f"{section}.{key}"
            if name in entries:
                value, source = entries[name]
                variable = source.startswith(PREFIX)
                try:
                    # A file contains typed values; a variable contains text to parse.
                    value = _typed(value, hint) if variable else value
                    value = msgspec.convert(value, hint, strict=not variable)
                    check = CHECKS.get(name)
                    if check is not None:
                        check(value)
                    if name in NORMAL:
                        value = NORMAL[name](value)
                except msgspec.ValidationError:
                    secret = name in HIDDEN
                    wrong = fault_texts.wrong_value(hint, value, secret=secret)
                    faults.append(f"{name}: {wrong} (from {source})")
                except ValueError as error:
                    faults.append(f"{name}: {error} (from {source})")
                else:
                    values[key] = value
        sections[section] = kind(**values)
    faults += together(sections)
    if faults:
        raise ConfigFaults(faults)
    return Config(**sections)


def environment_name(section: str, key: str) -> str:
    """Return the name of the variable that overrides a key."""
    return f"{PREFIX}{section.upper()}__{key.upper()}"


def _from_file(path: Path, faults: list[str]) -> dict[str, tuple[Any, str]]:
    try:
        document = tomllib.loads(source_texts.of_file(path))
    except OSError as error:
        faults.append(f"{path}: cannot be read: {error.strerror}")
        return {}
    except tomllib.TOMLDecodeError as error:
        faults.append(f"{path}: not valid TOML: {error}")
        return {}
    except ValueError as error:
        faults.append(f"{path}: {error}")
        return {}
    entries = {}
    for section, table in document.items():
        if section not in SECTIONS or not isinstance(table, dict):
            faults.append(_unknown(section if isinstance(table, dict) else "", section, path.name))
            continue
        for key, value in table.items():
            if key in get_type_hints(SECTIONS[section]):
                entries[f"{section}.{key}"] = (value, path.name)
            else:
                faults.append(_unknown(section, key, path.name))
    return entries


def _from_environment(env: Mapping[str, str], faults: list[str]) -> dict[str, tuple[Any, str]]:
    entries: dict[str, tuple[Any, str]] = {}
    for variable in sorted(env):
        # A name without "__" is not a setting: Kubernetes sets CARTEIRO_PORT and the like.
        if not variable.startswith(PREFIX) or "__" not in variable:
            continue
        section, _, key = variable.removeprefix(PREFIX).lower().partition("__")
        keys = get_type_hints(SECTIONS[section]) if section in SECTIONS else {}
        secret = key.removesuffix("_file")
        is_file = key not in keys and key.endswith("_file")
        if key not in keys and not (is_file and f"{section}.{secret}" in SECRET_KEYS):
            faults.append(_unknown(section, key, variable))
            continue
        name = f"{section}.{secret if is_file else key}"
        try:
            value = source_texts.of_variable(env[variable])
            # Sorted, `…_FILE` comes after the variable that it overrides.
            entries[name] = (source_texts.of_secret_file(value) if is_file else value, variable)
        except OSError as error:
            faults.append(f"{name}: {value} cannot be read: {error.strerror} ({variable})")
        except ValueError as error:
            faults.append(f"{name}: {error} (from {variable})")
    return entries


def _unknown(section: str, key: str, source: str) -> str:
    keys = {name: list(get_type_hints(kind)) for name, kind in SECTIONS.items()}
    return fault_texts.unknown_key(section, key, source, keys)


def _typed(text: str, hint: Any) -> Any:
    """Parse a variable: commas separate list items.

    Lists of tables are JSON.
    """
    inner = hint.__origin__ if hasattr(hint, "__metadata__") else hint
    if inner in (tuple[App, ...], tuple[Peer, ...]):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError:
            raise msgspec.ValidationError from None
    if get_origin(inner) is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if inner is bool:
        if (word := text.lower()) not in YES + NO:
            raise msgspec.ValidationError
        return word in YES
    return text


YES, NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")
