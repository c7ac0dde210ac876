"""Writes docs/reference/commands.md from the declarations of the commands."""

import argparse
from collections.abc import Iterator, Mapping

from gateway.cli.command_line import COMMANDS, Command

MORE: Mapping[str, str] = {
    "demo": "../how-to/break-the-demo.md",
    "doctor": "../how-to/test-a-receiver.md#find-out-why-it-gets-nothing",
    "certify": "../how-to/test-a-receiver.md#certify",
    "listen": "../how-to/test-a-receiver.md#listen-without-a-webhook",
    "replay": "../how-to/recover-events.md#replay",
    "verify": "../explanation/security.md#proof-of-what-was-sent",
    "erase": "../how-to/erase-a-person.md#by-command",
    "import": "many-records.md#imports",
    "export": "many-records.md#exports",
    "user add": "../how-to/manage-accounts.md",
    "key add": "../how-to/manage-accounts.md",
    "store add": "../how-to/build-a-shop.md",
    "webhooks export": "../how-to/webhooks-as-files.md",
    "webhooks plan": "../how-to/webhooks-as-files.md",
    "webhooks apply": "../how-to/webhooks-as-files.md",
    "backup": "../how-to/back-up.md",
    "restore": "../how-to/back-up.md",
    "resume": "../how-to/back-up.md#what-to-know",
    "copy": "../how-to/back-up.md",
    "move": "../cells.md#moving-an-owner",
    "secrets init": "../explanation/security.md#when-a-key-is-lost-while-the-server-runs",
    "secrets rotate": "../explanation/security.md#replacing-the-key",
    "signing-keys list": "../explanation/security.md#keys-of-the-installation",
    "signing-keys rotate": "../explanation/security.md#keys-of-the-installation",
}
"""The page that explains a command."""


def lines() -> Iterator[str]:
    """Yield the generated part of the page."""
    for command in COMMANDS:
        more = f" [More]({MORE[command.words]})." if command.words in MORE else ""
        yield f"## carteiro {command.words}\n"
        yield f"{command.does} For example `{command.example}`.{more}\n"
        rows = list(_rows(command))
        if rows:
            yield "\n".join(("| argument | means |", "| --- | --- |", *rows)) + "\n"


def _rows(command: Command) -> Iterator[str]:
    """Yield a row for each argument of a command."""
    parser = argparse.ArgumentParser(add_help=False)
    command.arguments(parser)
    # argparse has no public access to the declared arguments.
    for action in parser._actions:
        value = action.metavar or " or ".join(action.choices or ()) or action.dest.upper()
        name = ", ".join(action.option_strings) or str(value)
        if action.option_strings and action.nargs != 0:
            name += f" {value}"
        needed = "; required" if action.required and action.option_strings else ""
        yield f"| `{name}` | {(action.help or '') % vars(action)}{needed} |"
