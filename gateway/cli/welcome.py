"""The welcome of `carteiro serve`: the address, and how to create the first account."""

import base64
import shutil
import sys
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

from gateway.cli.language import spoken
from gateway.domain.accounts import sessions
from gateway.server.program import Role, program_version
from gateway.server.telemetry import logs
from outbox.database.transaction import Database

Say = Callable[[str], None]


async def greet(db: Database, address: str, role: Role, say: Say) -> None:
    """Say the address of a server that is ready, and the link to its first account."""
    if role == "worker":
        lines = [f"Carteiro {program_version()} sends deliveries; health and metrics at {address}"]
    else:
        lines = [f"Carteiro {program_version()} is ready; console at {address}/console"]
        token = base64.urlsafe_b64encode(db.ids.token(32)).rstrip(b"=").decode()
        if await db.write(sessions.offer_first_account, token):
            t = spoken()
            lines += [
                # Apart from the lines of the log, which a terminal shows before and after it.
                f"\n{t('cli.first_link')}",
                f"  {address}/console/first-account?token={token}",
                t("cli.first_command"),
                f"  {_program()} user add EMAIL --name NAME\n",
            ]
    welcome(lines, say)


def welcome(lines: Sequence[str], say: Say) -> None:
    """Say the lines as far as the output takes them; a server serves without it, too."""
    try:
        for line in lines:
            try:
                say(line)
            except UnicodeEncodeError:
                # Letters without their accents, where the output has no others.
                say(unicodedata.normalize("NFKD", line).encode("ascii", "ignore").decode())
    except (OSError, ValueError) as error:
        logs.logger().warning(
            "welcome_not_shown",
            error=str(error),
            fix="create the first account with: carteiro user add EMAIL --name NAME",
        )


def _program() -> str:
    """Return the command that runs this program, with its path if it is not on PATH."""
    called = Path(sys.argv[0])
    if called.name == "carteiro" and shutil.which("carteiro") is None:
        return str(called)
    return "carteiro"
