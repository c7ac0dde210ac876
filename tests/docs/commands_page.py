"""Writes docs/reference/commands.md from the declarations of the commands."""

import argparse
from collections.abc import Iterator, Mapping

from gateway.cli.command_line import COMMANDS, Command

HEAD = """\
# Commands

Each command with its arguments, as `--help` prints them. `make setup` installs `carteiro` into
`.venv/bin`: run `. .venv/bin/activate` once in a shell. `python -m gateway` is the same. All
commands read the [configuration](configuration.md) of `serve`; `--config FILE` stands before or
after the command.

`user`, `key` and `store` work while the server runs, and before its first start. Of missing folders
only `data/` is created. Help, the first screens of `serve` and `demo`, and the verdict of `doctor`
are in Portuguese when the first of `LC_ALL`, `LC_MESSAGES` and `LANG` that is set names it. The log
and what `--json` prints never change.

`python -m outbox` delivers events of a database without the REST API and the console. It removes
rows older than `--keep-days`.

| exit status | means |
| --- | --- |
| 0 | done |
| 1 | refused or failed; one line on standard error names the reason, or the output of `doctor` |
| 2 | wrong arguments or configuration; `certify`: no verdict |
| 3 | `webhooks plan --exit-code`: there is something to do |
| 130 | interrupted |

For a report of a bug, set `CARTEIRO_TRACEBACK=1`: a traceback never appears otherwise.
"""
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
    "copy": "../how-to/back-up.md",
    "move": "../cells.md#moving-an-owner",
    "secrets init": "../explanation/security.md#when-a-key-is-lost-while-the-server-runs",
    "secrets rotate": "../explanation/security.md#replacing-the-key",
    "signing-keys list": "../explanation/security.md#keys-of-the-installation",
    "signing-keys rotate": "../explanation/security.md#keys-of-the-installation",
}
"""The page that explains a command."""


def lines() -> Iterator[str]:
    """Yield the page."""
    yield HEAD
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
