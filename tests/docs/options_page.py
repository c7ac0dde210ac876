"""Writes docs/reference/options.md from the declarations of the commands.

`python -m tests.docs.options_page > docs/reference/options.md`
"""

import argparse
from collections.abc import Iterator

from gateway.cli.command_line import COMMANDS, Command

HEAD = """\
<!-- Generated: python -m tests.docs.options_page > docs/reference/options.md -->
# Commands and their options

Each command with its arguments, as `--help` prints them. All take `--config FILE` too, before or
after the command. [Commands](commands.md) tells what they are for.
"""


def lines() -> Iterator[str]:
    """Yield the page."""
    yield HEAD
    for command in COMMANDS:
        yield f"## carteiro {command.words}\n\n{command.does} For example `{command.example}`.\n"
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


if __name__ == "__main__":
    print("\n".join(lines()).rstrip())
