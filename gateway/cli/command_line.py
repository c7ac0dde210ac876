"""Lists the commands with their arguments, help and examples, and builds the parser."""

import argparse
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gateway.cli.parser import Parser
from gateway.records.values import zones
from gateway.server.config import FILE_VARIABLE, FILES, Config
from gateway.server.program import ROLES, program_version

Arguments = Callable[[argparse.ArgumentParser], None]
Run = Callable[[Config, argparse.Namespace, Callable[[str], None]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its words, help text, example, function and arguments."""

    words: str
    does: str
    example: str
    run: Run | None
    arguments: Arguments = lambda parser: None


def _serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--role", choices=ROLES, default="all",
        help="api serves requests, worker sends deliveries, all does both (default)",
    )  # fmt: skip
    parser.add_argument("--port", type=_port, help="the port to listen on (overrides the setting)")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:6]) <= 65_535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 65535")
    return int(text)


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def _email(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("email", metavar="EMAIL", help="the email address of the account")


def _password(parser: argparse.ArgumentParser) -> None:
    _email(parser)
    parser.add_argument(
        "--password-stdin", action="store_true",
        help="read the password from the first line of standard input",
    )  # fmt: skip


def _user_add(parser: argparse.ArgumentParser) -> None:
    _password(parser)
    parser.add_argument("--name", required=True, help="the name of the account")
    parser.add_argument(
        "--timezone", metavar="ZONE", default=zones.DEFAULT,
        help="the time zone of the account, an IANA name (default: %(default)s)",
    )  # fmt: skip


def _user_set(parser: argparse.ArgumentParser) -> None:
    _email(parser)
    parser.add_argument("--name", help="the new name")
    parser.add_argument("--timezone", metavar="ZONE", help="the new time zone, an IANA name")


def _listed(parser: argparse.ArgumentParser) -> None:
    _email(parser)
    _json(parser)


def _key_revoke(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="its listed beginning, its id, or the full key")


def _key_add(parser: argparse.ArgumentParser) -> None:
    _email(parser)
    parser.add_argument("--name", required=True, metavar="LABEL", help="the purpose of the key")
    parser.add_argument(
        "--scope", action="append", choices=("read", "write"),
        help="a scope of the key; can be given twice (default: both scopes)",
    )  # fmt: skip
    parser.add_argument(
        "--expires-days", type=int, metavar="DAYS", help="the number of days until the key expires"
    )


def _store_add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("hostname", metavar="HOSTNAME", help="the hostname of the store")
    parser.add_argument(
        "--owner", metavar="EMAIL", required=True, help="the email address of the account"
    )
    parser.add_argument("--name", required=True, help="the name of the store")
    parser.add_argument(
        "--alias", action="append", metavar="HOSTNAME",
        help="a further hostname, such as the one with www.; can be given more than once",
    )  # fmt: skip
    parser.add_argument(
        "--origin", action="append", metavar="ORIGIN",
        help="an origin whose pages may call the storefront, such as https://shop.example.com; "
        "can be given more than once",
    )  # fmt: skip


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="URL", help="the URL of the receiver, or the id of a webhook"
    )
    parser.add_argument(
        "--secret", metavar="whsec_…", help="sign with this secret (default: one made for this)"
    )
    parser.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS",
        help="wait this long for the response to a URL (default: the setting)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _listen(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--key", metavar="KEY", help="an API key (default: $CARTEIRO_KEY)")
    parser.add_argument("--forward", metavar="URL", help="send each event to this URL")
    parser.add_argument(
        "--server", metavar="URL",
        help="the address of Carteiro (default: $CARTEIRO_URL, else that of this configuration)",
    )  # fmt: skip
    parser.add_argument(
        "--after", metavar="EVENT", help="begin behind this event (default: behind the newest)"
    )
    parser.add_argument("--types", metavar="EVENTS", help="only these events, with commas between")
    parser.add_argument(
        "--secret", metavar="whsec_…", help="sign with this secret (default: a new one)"
    )
    parser.add_argument("--body", action="store_true", help="print the body of each event too")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 30:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 30")
    return seconds


def _backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to write; it must not exist")
    parser.add_argument(
        "--with-key", action="store_true",
        help="put the key file into it too; whoever has the file can then read all secrets",
    )  # fmt: skip


def _restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a file of `carteiro backup`")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace all data of a database that is not empty"
    )
    parser.add_argument("--check", action="store_true", help="only check that the file is whole")


def _copy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to", metavar="URL", required=True, help="the empty PostgreSQL database to copy to"
    )


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="run a fixed number of writes and exit")
    parser.add_argument("--folder", help="the folder for its files (default: a temporary one)")
    parser.add_argument(
        "--port", type=_port, default=0, help="the port to listen on (default: any free port)"
    )


def _from(module: str, name: str) -> Run:
    """Return a command whose module is imported when it runs, so that --help is quick."""

    def run(
        config: Config, given: argparse.Namespace, say: Callable[[str], None]
    ) -> Awaitable[None]:
        command: Run = getattr(import_module(f"gateway.cli.{module}"), name)
        return command(config, given, say)

    return run


COMMANDS: tuple[Command, ...] = (
    Command(
        "serve", "Run the API, the console and the delivery of webhooks.",
        "carteiro serve --role all", _from("commands", "serve"), _serve,
    ),
    Command(
        "demo", "Show signed deliveries from a gateway to a receiver, for a stream of writes.",
        "carteiro demo --once", None, _demo,
    ),
    Command(
        "migrate", "Apply all missing migrations to the database.",
        "carteiro migrate", _from("commands", "migrate"),
    ),
    Command(
        "check-config", "Check the configuration and list all errors in it.",
        "carteiro --config config.toml check-config", _from("commands", "check_config"),
    ),
    Command(
        "openapi", "Print the OpenAPI document of the REST API.",
        "carteiro openapi", _from("commands", "openapi"),
    ),
    Command(
        "sdl", "Print the schema of the storefront GraphQL API.",
        "carteiro sdl", _from("commands", "sdl"),
    ),
    Command(
        "doctor", "Examine a receiver: each step of a delivery to it, and the times of retries.",
        "carteiro doctor https://hooks.example.com/carteiro", _from("doctor", "doctor"), _doctor,
    ),
    Command(
        "listen", "Print the events of an account as they happen, and forward them, signed.",
        "carteiro listen --key crt_4kYb91Qx --forward http://localhost:9000/hook",
        _from("listening.listen", "listen"), _listen,
    ),
    Command(
        "user add", "Create an account and print its id.",
        "carteiro user add maria@example.com --name 'Maria Silva'",
        _from("commands", "user_add"), _user_add,
    ),
    Command(
        "user list", "List all accounts, including disabled ones.",
        "carteiro user list", _from("commands", "user_list"), _json,
    ),
    Command(
        "user set", "Change the name or time zone of an account.",
        "carteiro user set maria@example.com --timezone America/Manaus",
        _from("commands", "user_set"),
        _user_set,
    ),
    Command(
        "user set-password", "Set a new password and end all sessions of the account.",
        "carteiro user set-password maria@example.com",
        _from("commands", "user_set_password"), _password,
    ),
    Command(
        "user disable", "Disable an account; its data is kept.",
        "carteiro user disable maria@example.com",
        _from("commands", "user_disable"), _email,
    ),
    Command(
        "user enable", "Enable a disabled account.",
        "carteiro user enable maria@example.com",
        _from("commands", "user_enable"), _email,
    ),
    Command(
        "key add", "Create an API key and print it once.",
        "carteiro key add maria@example.com --name 'Zapier' --scope read",
        _from("key_commands", "key_add"),
        _key_add,
    ),
    Command(
        "key list", "List the API keys of an account, without their secret parts.",
        "carteiro key list maria@example.com",
        _from("key_commands", "key_list"), _listed,
    ),
    Command(
        "key revoke", "Revoke an API key; it stops working within a second on every node.",
        "carteiro key revoke crt_4kYb91Qx", _from("key_commands", "key_revoke"), _key_revoke,
    ),
    Command(
        "store add", "Create a store of an account and print its id.",
        "carteiro store add shop.example.com --owner maria@example.com --name 'Coffee Shop'",
        _from("store_commands", "store_add"), _store_add,
    ),
    Command(
        "store list", "List the stores of an account.",
        "carteiro store list maria@example.com", _from("store_commands", "store_list"), _listed,
    ),
    Command(
        "backup", "Write all data to a file, also while the server runs.",
        "carteiro backup monday.backup", _from("data.commands", "backup"), _backup,
    ),
    Command(
        "restore", "Put the data of a backup into the database: all of it or nothing.",
        "carteiro restore monday.backup", _from("data.commands", "restore"), _restore,
    ),
    Command(
        "copy", "Move all data from the SQLite file to an empty PostgreSQL database.",
        "carteiro copy --to postgresql://carteiro@localhost/carteiro",
        _from("data.commands", "copy"), _copy,
    ),
    Command(
        "secrets init", "Create the key file, which encrypts webhook secrets in the database.",
        "carteiro secrets init", _from("commands", "secrets_init"),
    ),
)  # fmt: skip

GROUPS = {
    "user": "Create, list, change, disable and enable accounts.",
    "key": "Create, list and revoke API keys.",
    "store": "Create and list stores.",
    "secrets": "Manage the keys that encrypt secrets in the database.",
}


def build_parser() -> Parser:
    """Build the parser of the whole command line."""
    parser = Parser(
        prog="carteiro",
        description="A CRM REST API that delivers every write to its webhooks.",
        epilog="Example: carteiro serve",
    )
    parser.add_argument("--version", action="version", version=f"carteiro {program_version()}")
    _config(parser, None)
    parser.set_defaults(command=None, parser=parser)
    tops = parser.add_subparsers(metavar="COMMAND")
    groups: dict[str, Any] = {}
    for command in COMMANDS:
        group, _, verb = command.words.rpartition(" ")
        if group and group not in groups:
            middle = tops.add_parser(
                group, help=GROUPS[group], description=GROUPS[group],
                epilog=f"Example: {command.example}",
            )  # fmt: skip
            _config(middle)
            middle.set_defaults(command=None, parser=middle)
            groups[group] = middle.add_subparsers(metavar="VERB")
        leaf = (groups[group] if group else tops).add_parser(
            verb, help=command.does, description=command.does, epilog=f"Example: {command.example}"
        )
        command.arguments(leaf)
        _config(leaf)
        leaf.set_defaults(command=command, parser=leaf)
    return parser


def _config(parser: argparse.ArgumentParser, default: str | None = argparse.SUPPRESS) -> None:
    """Add --config; a subparser has no default, so that it keeps an earlier value."""
    parser.add_argument(
        "--config", metavar="FILE", default=default,
        help=f"the configuration file (default: ${FILE_VARIABLE}, else {' and '.join(FILES)} here)",
    )  # fmt: skip
