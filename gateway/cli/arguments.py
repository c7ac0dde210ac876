"""Declares the arguments of each command.

It is one module because a reader looks for every argument and its default in one place.
"""

import argparse

from gateway.domain.imports.import_options import CHOICES
from gateway.records.values import written_numbers, zones
from gateway.server.program import ROLES
from gateway.texts import CODES


def serve(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--role", choices=ROLES, default="all",
        help="api serves requests, worker sends deliveries, all does both (default)",
    )  # fmt: skip
    parser.add_argument("--port", type=_port, help="the port to listen on (overrides the setting)")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text[:6]) <= 65_535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 65535")
    return int(text)


def json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object per line")


def email(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("email", metavar="EMAIL", help="the email address of the account")


def password(parser: argparse.ArgumentParser) -> None:
    email(parser)
    parser.add_argument(
        "--password-stdin", action="store_true",
        help="read the password from the first line of standard input",
    )  # fmt: skip


def user_add(parser: argparse.ArgumentParser) -> None:
    password(parser)
    parser.add_argument("--name", required=True, help="the name of the account")
    parser.add_argument(
        "--timezone", metavar="ZONE", default=zones.DEFAULT,
        help="the time zone of the account, an IANA name (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--language", choices=CODES,
        help="the language of its first stages, its pages and mails (default: that of the locale "
        "for the stages, that of the browser for pages)",
    )  # fmt: skip


def user_set(parser: argparse.ArgumentParser) -> None:
    email(parser)
    parser.add_argument("--name", help="the new name")
    parser.add_argument("--timezone", metavar="ZONE", help="the new time zone, an IANA name")
    parser.add_argument(
        "--email", dest="new_email", metavar="ADDRESS", help="the new address for sign-in"
    )


def listed(parser: argparse.ArgumentParser) -> None:
    email(parser)
    json(parser)


def key_revoke(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="its listed beginning, its id, or the full key")


def key_add(parser: argparse.ArgumentParser) -> None:
    email(parser)
    parser.add_argument("--name", required=True, metavar="LABEL", help="the purpose of the key")
    parser.add_argument(
        "--scope", action="append", choices=("read", "write"),
        help="a scope of the key; can be given twice (default: both scopes)",
    )  # fmt: skip
    parser.add_argument(
        "--resource", action="append", metavar="RESOURCE",
        help="what of the API the key is for, such as contacts; can be given again (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--expires-days", type=int, metavar="DAYS", help="the number of days until the key expires"
    )


def store_add(parser: argparse.ArgumentParser) -> None:
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


def doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", nargs="?", metavar="URL",
        help="the URL of the receiver, or the id of a webhook; without it, list the webhooks that "
        "earlier versions requested at another path or query than their URL has",
    )  # fmt: skip
    parser.add_argument(
        "--secret", metavar="whsec_…", help="sign with this secret (default: a temporary one)"
    )
    parser.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS",
        help="wait this long for the response to a URL (default: the setting)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def certify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="URL", help="the URL of the receiver, or the id of a webhook"
    )
    secret = parser.add_mutually_exclusive_group()
    secret.add_argument(
        "--secret", metavar="whsec_…",
        help="the secret of the receiver; other users of this machine can see it (default: "
        "$WEBHOOK_SECRET)",
    )  # fmt: skip
    secret.add_argument(
        "--secret-file", metavar="FILE", help="a file with the secret; - reads standard input"
    )
    parser.add_argument(
        "--header", action="append", metavar="'NAME: VALUE'",
        help="a header of each request, such as Authorization; can be given more than once",
    )  # fmt: skip
    parser.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS",
        help="wait this long for each response (default: the setting)",
    )  # fmt: skip
    parser.add_argument(
        "--loopback", action="store_true",
        help="allow http and the loopback addresses: the receiver runs on this machine",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def listen(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--key", metavar="KEY", help="an API key (default: $CARTEIRO_KEY)")
    parser.add_argument("--forward", metavar="URL", help="send each event to this URL")
    server(parser)
    parser.add_argument(
        "--after", metavar="EVENT", help="start after this event (default: after the newest)"
    )
    parser.add_argument("--types", metavar="EVENTS", help="only these events, separated by commas")
    parser.add_argument(
        "--secret", metavar="whsec_…", help="sign with this secret (default: a new one)"
    )
    parser.add_argument("--body", action="store_true", help="print the body of each event too")


def server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--server", metavar="URL",
        help="the address of Carteiro (default: $CARTEIRO_URL, else from this configuration)",
    )  # fmt: skip


def replay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("webhook", metavar="WEBHOOK", help="the id of the webhook")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--since", metavar="TIME",
        help="only events since this RFC 3339 time, or age such as 90min, 2h or 3d",
    )  # fmt: skip
    which.add_argument(
        "--delivery", action="append", metavar="ID",
        help="this delivery; can be given more than once",
    )  # fmt: skip
    parser.add_argument(
        "--until", metavar="TIME", help="only events before this time (default: now)"
    )
    parser.add_argument(
        "--state", choices=("failed", "exhausted", "gone", "dead", "cancelled", "delivered"),
        default="failed", help="their state; failed is exhausted, gone and dead (default)",
    )  # fmt: skip
    parser.add_argument(
        "--rate", type=int, default=1000, metavar="N",
        help="the maximum of replays per second, 1 to 1000 (default)",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="only count them")


def verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--webhook", metavar="WEBHOOK", help="only the webhook with this id (default: all)"
    )
    parser.add_argument(
        "--noted", metavar="PLACE:DIGEST",
        help="the end of the webhook's log that an earlier run printed; it must still be in it",
    )  # fmt: skip
    parser.add_argument(
        "--checkpoint", metavar="FILE",
        help="checkpoints that were saved before: the ends that they note must still be in the log",
    )  # fmt: skip
    parser.add_argument(
        "--public-key", metavar="KEY",
        help="the key that signed them: whpk_…, or a file with /.well-known/carteiro/keys",
    )  # fmt: skip
    parser.add_argument(
        "--retention-days", metavar="DAYS", type=int, default=0,
        help="the shortest time that deliveries were kept, if it was shorter than it is now",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def import_(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="TYPE", help="such as contacts; with --type, the file")
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="the CSV file, with a heading in its first line"
    )
    parser.add_argument("--type", metavar="TYPE", help="such as contacts, in place of TYPE")
    parser.add_argument("--owner", required=True, metavar="EMAIL", help="the account's address")
    parser.add_argument(
        "--columns", metavar="HEADING:FIELD,…",
        help="the columns to import and their fields, also as JSON (default: by their headings)",
    )  # fmt: skip
    parser.add_argument(
        "--column", metavar="HEADING=FIELD", action="append", default=[],
        help="a column to import and its field; repeat it for further columns",
    )  # fmt: skip
    parser.add_argument("--dry-run", action="store_true", help="only report the faulty lines")
    parser.add_argument(
        "--numbers", choices=CHOICES["numbers"], default=CHOICES["numbers"][0],
        help="how the file writes numbers (default: auto, by all cells and the separator)",
    )  # fmt: skip
    parser.add_argument(
        "--dates", choices=CHOICES["dates"], default=CHOICES["dates"][0],
        help="how the file writes dates (default: auto, by all cells and the separator)",
    )  # fmt: skip
    parser.add_argument(
        "--mode", choices=CHOICES["mode"], default=CHOICES["mode"][0],
        help="with a fault in an optional field, import the line without it or refuse the line "
        "(default: lenient)",
    )  # fmt: skip
    parser.add_argument(
        "--duplicates", choices=CHOICES["duplicates"], default=CHOICES["duplicates"][0],
        help="with the id or key of a line before, refuse the line or let it update the record "
        "(default: refuse)",
    )  # fmt: skip
    parser.add_argument(
        "--faulty", metavar="FILE", help="write the faulty lines to this new file, to be mended"
    )


def export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("type", metavar="TYPE", help="such as contacts")
    parser.add_argument("--owner", required=True, metavar="EMAIL", help="the account's address")
    parser.add_argument(
        "--separator", choices=(",", ";", "tab"), default=",", help="between cells (default: ,)"
    )
    parser.add_argument(
        "--numbers", choices=(written_numbers.POINT, written_numbers.COMMA),
        default=written_numbers.POINT,
        help="how numbers are written, without groups (default: a decimal point)",
    )  # fmt: skip
    parser.add_argument(
        "--bom", action="store_true", help="begin with a byte order mark, for Excel"
    )


SHELLS = ("bash", "zsh", "fish", "powershell", "tcsh")


def completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def erase(parser: argparse.ArgumentParser) -> None:
    email(parser)
    parser.add_argument("person", metavar="PERSON", help="the id of the contact or the customer")
    parser.add_argument("--yes", action="store_true", help="erase without asking")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 30:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 30")
    return seconds


def backup(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the file to write; it must not exist")
    parser.add_argument(
        "--with-key", action="store_true",
        help="include the key file; anyone with the backup can then read all secrets",
    )  # fmt: skip


def restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a file of `carteiro backup`")
    parser.add_argument(
        "--overwrite", action="store_true", help="replace all data of a database that is not empty"
    )
    parser.add_argument(
        "--pause", action="store_true",
        help="pause all webhooks, mails and all else that others notice, until `carteiro resume`",
    )  # fmt: skip
    parser.add_argument("--check", action="store_true", help="only check that the file is complete")


def secrets_init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--give-up-secrets", action="store_true",
        help="the keys of this database are lost: create new ones for it, and give up "
        "the secrets in it",
    )  # fmt: skip


def rotate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stage", action="store_true",
        help="only add the new key, for decrypting; then copy the file to every node",
    )  # fmt: skip
    parser.add_argument(
        "--only-node", action="store_true",
        help="on PostgreSQL: no other node uses the database, so no file needs to be copied first",
    )  # fmt: skip


def signing_keys_rotate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--at-once", action="store_true",
        help="end the earlier keys at once, because somebody else may have one",
    )  # fmt: skip


def copy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to", metavar="URL", required=True, help="the empty PostgreSQL database to copy to"
    )


def move(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("email", metavar="EMAIL", nargs="?", help="the account that moves")
    parser.add_argument(
        "--to", metavar="TARGET",
        help="where the account goes: a cell of cell.peers, a configuration file, or the URL of a "
        "database",
    )  # fmt: skip
    parser.add_argument(
        "--key-file", metavar="FILE", help="the key file of that database (default: as this one)"
    )
    parser.add_argument(
        "--cancel", action="store_true",
        help="keep the account here, after a command that was ended before the account was there",
    )  # fmt: skip
    parser.add_argument(
        "--plan", metavar="FILE",
        help="move the accounts of a plan, as `carteiro cells plan` prints it",
    )  # fmt: skip
    parser.add_argument("--rate", type=_rate, metavar="N", help="with --plan: moves an hour")


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate <= 3600:
        raise argparse.ArgumentTypeError("must be a number above 0, at most 3600")
    return rate


def demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="run a fixed number of writes and exit")
    parser.add_argument(
        "--break", action="store_true", dest="breaking",
        help="serve a page that breaks it: kill, freeze, lock, fill, move the clock",
    )  # fmt: skip
    parser.add_argument("--folder", help="the folder for its files (default: a temporary one)")
    parser.add_argument(
        "--port", type=_port, default=0, help="the port to listen on (default: any free port)"
    )
