"""Declares the arguments of the commands for webhooks as files."""

import argparse

from gateway.cli import arguments


def _owner(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--owner", required=True, metavar="EMAIL", help="the account's address")


def export(parser: argparse.ArgumentParser) -> None:
    _owner(parser)


def _file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the TOML file with the webhooks")
    _owner(parser)
    parser.add_argument(
        "--prune", action="store_true", help="delete the webhooks that are not in the file"
    )


def plan(parser: argparse.ArgumentParser) -> None:
    _file(parser)
    parser.add_argument(
        "--exit-code", action="store_true", help="end with 3 when there is something to do"
    )
    arguments.json(parser)


def apply(parser: argparse.ArgumentParser) -> None:
    _file(parser)
    parser.add_argument(
        "--plan",
        metavar="MARK",
        help="apply only the plan with this mark: refuse when anything has changed since",
    )
    parser.add_argument(
        "--secrets",
        metavar="FILE",
        help="write new secrets to this file, which must not exist (default: print them)",
    )
