"""The server that a command talks to over HTTP."""

import os
import re
from argparse import Namespace

from gateway.server.config import Config
from gateway.server.installation import public_address
from outbox.errors import CannotStart

SERVER_VARIABLE = "CARTEIRO_URL"


def server_of(config: Config, arguments: Namespace) -> str:
    """Return the address of `--server`, the environment or the configuration.

    Raise CannotStart for what is no URL: no repetition of a request would reach it.
    """
    given = arguments.server or os.environ.get(SERVER_VARIABLE, "")
    if given and not re.match(r"https?://[^/?#\s]+(/[^?#\s]*)?$", given, re.I):
        source = "--server" if arguments.server else f"${SERVER_VARIABLE}"
        raise CannotStart(f"{source} {given}: it is not a URL such as https://crm.example.com")
    return (given or public_address(config, config.server.port)).rstrip("/")
