"""`carteiro completion`: prints the script by which a shell completes commands and options."""

import argparse

import shtab

from gateway.cli.command_line import build_parser
from gateway.cli.commands import Say
from gateway.server.config import Config

_PATHS = {"FILE": shtab.FILE, "FOLDER": shtab.DIRECTORY}


async def completion(config: Config, arguments: argparse.Namespace, say: Say) -> None:
    """Print the script of a shell; it holds nothing of this machine or its data."""
    parser = build_parser()
    _complete_paths(parser)
    say(shtab.complete(parser, arguments.shell).rstrip())


def _complete_paths(parser: argparse.ArgumentParser) -> None:
    """Let what takes a file or a folder be completed by their names."""
    for action in parser._actions:
        if isinstance(action.metavar, str) and action.metavar in _PATHS:
            action.complete = _PATHS[action.metavar]  # type: ignore[attr-defined]  # as shtab asks
        for below in dict(action.choices or {}).values() if action.nargs == argparse.PARSER else ():
            _complete_paths(below)
