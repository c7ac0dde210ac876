"""Declares the arguments of the commands for cells."""

import argparse


def cells_map(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder",
        metavar="FOLDER",
        default="/etc/haproxy",
        help="where HAProxy reads its maps (default: /etc/haproxy)",
    )


def cells_push(parser: argparse.ArgumentParser) -> None:
    cells_map(parser)
    parser.add_argument(
        "--socket", metavar="PATH", required=True, help="the stats socket of HAProxy, level admin"
    )
