"""Lists the commands with their arguments, help and examples, and builds the parser.

It is one module because a reader looks for every command in one place.
"""

import argparse
import difflib
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

from gateway.cli import arguments, webhook_arguments
from gateway.cli.language import of_declaration
from gateway.server.config import FILE_VARIABLE, FILES, Config
from gateway.server.program import program_revision, program_version


class Parser(argparse.ArgumentParser):
    """A parser whose errors show the usage and the example of their own command."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(2, f"{self.prog}: error: {message}\n{self.epilog}\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a word that is none of the choices, with the nearest one; argparse calls this."""
        choices = [str(one) for one in action.choices or ()]
        if action.choices is None or value in action.choices:
            return
        close = difflib.get_close_matches(str(value), choices, n=1)
        named = action.metavar or "/".join(action.option_strings)
        told = f"; did you mean {close[0]}?" if close else f"; there are {', '.join(choices)}"
        raise argparse.ArgumentError(None, f"unknown {named}: {value}{told}")

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Report arguments that the command does not take. They may be secret keys."""
        option = words[0].partition("=")[0]
        if option.startswith("-"):
            close = difflib.get_close_matches(option, self._option_string_actions, n=1)
            self.error(f"unknown option {option}" + "".join(f"; did you mean {n}?" for n in close))
        named = " ".join(str(action.metavar) for action in self._get_positional_actions())
        self.error(f"too many arguments; it takes {named or 'options'} only")

    def incomplete(self) -> NoReturn:
        """Print the help of a parser whose command was not given."""
        self.print_help(sys.stderr)
        self.exit(2)


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
    configured: bool = True
    """Whether it reads the configuration; another one runs with the defaults."""


def _from(module: str, name: str) -> Run:
    """Return a command whose module is imported when it runs, so that --help is quick."""

    def run(
        config: Config, arguments: argparse.Namespace, say: Callable[[str], None]
    ) -> Awaitable[None]:
        command: Run = getattr(import_module(f"gateway.cli.{module}"), name)
        return command(config, arguments, say)

    return run


def _cells_map(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        default="/etc/haproxy",
        help="where HAProxy reads its maps (default: /etc/haproxy)",
    )


def _cells_push(parser: argparse.ArgumentParser) -> None:
    _cells_map(parser)
    parser.add_argument(
        "--socket", metavar="PATH", required=True, help="the stats socket of HAProxy, level admin"
    )


COMMANDS: tuple[Command, ...] = (
    Command(
        "serve", "Run the API, the console and the delivery of webhooks.",
        "carteiro serve --role all", _from("commands", "serve"), arguments.serve,
    ),
    Command(
        "demo", "Show signed deliveries from a gateway to a receiver, for a stream of writes.",
        "carteiro demo --once", None, arguments.demo,
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
        "completion", "Print the script by which a shell completes commands and options.",
        "carteiro completion bash", _from("completion", "completion"), arguments.completion,
        configured=False,
    ),
    Command(
        "doctor", "Examine a receiver: each step of a delivery to it, and the times of retries.",
        "carteiro doctor https://hooks.example.com/carteiro", _from("doctor", "doctor"),
        arguments.doctor,
    ),
    Command(
        "certify", "Test a receiver by test events, right ones and wrong ones, also in its CI.",
        "carteiro certify https://hooks.example.com/carteiro --secret-file s.txt",
        _from("certify", "certify"), arguments.certify,
    ),
    Command(
        "replay", "Send failed or selected deliveries of a webhook again.",
        "carteiro replay 019a6e1d4b7f5c2d9e3a1b0f --since 2h", _from("replay_command", "replay"),
        arguments.replay,
    ),
    Command(
        "verify", "Verify the log of deliveries: name what was changed or is missing.",
        "carteiro verify --webhook 019a6e1d4b7f5c2d9e3a1b0f", _from("verify", "run"),
        arguments.verify,
    ),
    Command(
        "erase", "Erase a person, also from events and the log, after a look at what goes.",
        "carteiro erase maria@example.com 019a6e1d4b7f5c2d9e3a1b0f", _from("erase", "erase"),
        arguments.erase,
    ),
    Command(
        "import", "Import records of an account from a CSV file.",
        "carteiro import contacts leads.csv --owner ana@example.com --dry-run",
        _from("spreadsheets", "import_"), arguments.import_,
    ),
    Command(
        "export", "Print the records of an account as CSV.",
        "carteiro export contacts --owner maria@example.com",
        _from("spreadsheets", "export"), arguments.export,
    ),
    Command(
        "listen", "Print the events of an account as they happen, and forward them, signed.",
        "carteiro listen --key crt_4kYb91Qx --forward http://localhost:9000/hook",
        _from("listening.listen", "listen"), arguments.listen,
    ),
    Command(
        "mcp", "Serve MCP on standard input and output: tools of an account for desktop programs.",
        "carteiro mcp --server https://crm.example.com",
        _from("mcp", "mcp"), arguments.server,
    ),
    Command(
        "user add", "Create an account and print its id.",
        "carteiro user add maria@example.com --name 'Maria Silva'",
        _from("user_commands", "user_add"), arguments.user_add,
    ),
    Command(
        "user list", "List all accounts, including disabled ones.",
        "carteiro user list", _from("user_commands", "user_list"), arguments.json,
    ),
    Command(
        "user set", "Change the name, time zone or e-mail address of an account.",
        "carteiro user set maria@example.com --timezone America/Manaus",
        _from("user_commands", "user_set"),
        arguments.user_set,
    ),
    Command(
        "user set-password", "Set a new password and end all sessions of the account.",
        "carteiro user set-password maria@example.com",
        _from("user_commands", "user_set_password"), arguments.password,
    ),
    Command(
        "user end-two-factor", "Turn off the two-factor authentication of an account.",
        "carteiro user end-two-factor maria@example.com",
        _from("user_commands", "user_end_two_factor"), arguments.email,
    ),
    Command(
        "user disable", "Disable an account; its data is kept.",
        "carteiro user disable maria@example.com",
        _from("user_commands", "user_disable"), arguments.email,
    ),
    Command(
        "user enable", "Enable a disabled account.",
        "carteiro user enable maria@example.com",
        _from("user_commands", "user_enable"), arguments.email,
    ),
    Command(
        "key add", "Create an API key and print it once.",
        "carteiro key add maria@example.com --name 'Zapier' --scope read",
        _from("key_commands", "key_add"),
        arguments.key_add,
    ),
    Command(
        "key list", "List the API keys of an account, without their secret parts.",
        "carteiro key list maria@example.com",
        _from("key_commands", "key_list"), arguments.listed,
    ),
    Command(
        "key revoke", "Revoke an API key; it stops working within a second on every node.",
        "carteiro key revoke crt_4kYb91Qx", _from("key_commands", "key_revoke"),
        arguments.key_revoke,
    ),
    Command(
        "store add", "Create a store of an account and print its id.",
        "carteiro store add shop.example.com --owner maria@example.com --name 'Coffee Shop'",
        _from("store_commands", "store_add"), arguments.store_add,
    ),
    Command(
        "store list", "List the stores of an account.",
        "carteiro store list maria@example.com", _from("store_commands", "store_list"),
        arguments.listed,
    ),
    Command(
        "webhooks export", "Print the webhooks of an account as a file, without secrets.",
        "carteiro webhooks export --owner maria@example.com",
        _from("webhook_commands", "export"), webhook_arguments.export,
    ),
    Command(
        "webhooks plan", "Print what would make the webhooks of an account like a file.",
        "carteiro webhooks plan hooks.toml --owner maria@example.com",
        _from("webhook_commands", "plan"), webhook_arguments.plan,
    ),
    Command(
        "webhooks apply", "Make the webhooks of an account like a file: all of it or nothing.",
        "carteiro webhooks apply hooks.toml --owner maria@example.com --secrets new.jsonl",
        _from("webhook_commands", "apply"), webhook_arguments.apply,
    ),
    Command(
        "backup", "Write all data to a file, also while the server runs.",
        "carteiro backup monday.backup", _from("data.data_commands", "backup"), arguments.backup,
    ),
    Command(
        "restore", "Put the data of a backup into the database: all of it or nothing.",
        "carteiro restore monday.backup", _from("data.data_commands", "restore"), arguments.restore,
    ),
    Command(
        "resume", "End the pause of a database restored with --pause: it sends mails from then on.",
        "carteiro resume", _from("pause", "resume"),
    ),
    Command(
        "copy", "Move all data from the SQLite file to an empty PostgreSQL database.",
        "carteiro copy --to postgresql://carteiro@localhost/carteiro",
        _from("data.data_commands", "copy"), arguments.copy,
    ),
    Command(
        "move", "Move one account to another database; on PostgreSQL servers keep running.",
        "carteiro move maria@example.com --to postgresql://carteiro@two/crm",
        _from("moving.move_command", "move"), arguments.move,
    ),
    Command(
        "cells list", "List the cells with their accounts, stores, events and sizes.",
        "carteiro cells list", _from("cells.cell_commands", "listed"), arguments.json,
    ),
    Command(
        "cells plan", "Print which accounts to move so that all cells have about the same load.",
        "carteiro cells plan", _from("cells.cell_commands", "planned"), arguments.json,
    ),
    Command(
        "cells map", "Write the maps by which HAProxy finds the cell of a request.",
        "carteiro cells map --folder /etc/haproxy", _from("cells.cell_commands", "mapped"),
        _cells_map,
    ),
    Command(
        "cells push", "Replace the maps of a running HAProxy.",
        "carteiro cells push --socket /run/haproxy/carteiro.sock",
        _from("cells.cell_commands", "pushed"), _cells_push,
    ),
    Command(
        "secrets init", "Create the key file, which encrypts webhook secrets in the database.",
        "carteiro secrets init", _from("secret_commands", "init"), arguments.secrets_init,
    ),
    Command(
        "secrets rotate", "Replace the key that encrypts secrets, while servers run.",
        "carteiro secrets rotate", _from("secret_commands", "rotate"), arguments.rotate,
    ),
    Command(
        "signing-keys list", "List the public keys of deliveries and checkpoints.",
        "carteiro signing-keys list", _from("signing_commands", "listed"), arguments.json,
    ),
    Command(
        "signing-keys rotate", "Replace the key that signs deliveries, while servers run.",
        "carteiro signing-keys rotate", _from("signing_commands", "rotate"),
        arguments.signing_keys_rotate,
    ),
)  # fmt: skip

GROUPS = {
    "user": "Create, list, change, disable and enable accounts.",
    "key": "Create, list and revoke API keys.",
    "store": "Create and list stores.",
    "webhooks": "Export, compare and change webhooks as files.",
    "signing-keys": "List and replace the Ed25519 keys that receivers verify with.",
    "cells": "List and balance cells, and tell a proxy where accounts are.",
    "secrets": "Manage the keys that encrypt secrets in the database.",
}


def build_parser() -> Parser:
    """Build the parser of the whole command line."""
    example = of_declaration("command.example", "Example:")
    parser = Parser(
        prog="carteiro",
        description=of_declaration(
            "command.product", "A CRM REST API that delivers every write to its webhooks."
        ),
        epilog=f"{example} carteiro serve",
    )
    version = f"carteiro {program_version()} ({program_revision()})"
    parser.add_argument("--version", action="version", version=version)
    _config(parser, None)
    parser.set_defaults(command=None, parser=parser)
    tops = parser.add_subparsers(metavar="COMMAND")
    groups: dict[str, Any] = {}
    for command in COMMANDS:
        group, _, verb = command.words.rpartition(" ")
        if group and group not in groups:
            does = of_declaration(f"command.{group}", GROUPS[group])
            middle = tops.add_parser(
                group, help=does, description=does, epilog=f"{example} {command.example}"
            )
            _config(middle)
            middle.set_defaults(command=None, parser=middle)
            groups[group] = middle.add_subparsers(metavar="VERB")
        does = of_declaration(f"command.{command.words.replace(' ', '_')}", command.does)
        leaf = (groups[group] if group else tops).add_parser(
            verb, help=does, description=does, epilog=f"{example} {command.example}"
        )
        command.arguments(leaf)
        _config(leaf)
        leaf.set_defaults(command=command, parser=leaf)
    return parser


def _config(parser: argparse.ArgumentParser, default: str | None = argparse.SUPPRESS) -> None:
    """Add --config; a subparser has no default, so that it keeps an earlier value."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        default=default,
        help=f"the configuration file (default: ${FILE_VARIABLE}, else {' and '.join(FILES)} here)",
    )
