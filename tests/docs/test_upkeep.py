"""Back up, restore, copy, upgrade and troubleshoot: the commands of their pages, in order."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.cli.command_line import COMMANDS, build_parser
from gateway.rest.document.openapi import document
from gateway.rest.routes import ROUTES
from gateway.server.config import ConfigFaults, load
from tests.docs.pages import Block, blocks, text_of
from tests.docs.session import Session
from tests.support.databases import PostgresServer
from tests.support.requirements import need
from tests.support.waiting import HANG_SECONDS

BACK_UP = "docs/how-to/back-up.md"
UPGRADE = "docs/how-to/upgrade.md"
TROUBLESHOOT = "docs/how-to/troubleshoot.md"
PAGES = (BACK_UP, UPGRADE, TROUBLESHOOT)
HERE = Path(__file__).parent
DUMPS = HERE.parent / "system" / "upgrades" / "dumps"
READY = "Carteiro 0.2.0 is ready;…"
[README] = [
    block for block in blocks("README.md") if "user add" in block.text and block.language == "sh"
]
INLINE = re.compile(r"`(carteiro [^`]+)`")
LOCAL = {"CARTEIRO_EGRESS__ALLOW": "127.0.0.1/32", "CARTEIRO_EGRESS__ALLOW_HTTP": "true"}


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    """The folder of an installation with an account, a contact and a webhook, which serves."""
    need("curl")
    folder = tmp_path / "installation"
    folder.mkdir()
    one = Session(folder, activated=True)
    one.environment |= LOCAL | {"URL": one.url}
    try:
        await asyncio.to_thread(serve, one)
        await asyncio.to_thread(one.run, README)
        await one.step("create a webhook")
        yield one
    finally:
        await asyncio.to_thread(one.close)


def serve(session: Session) -> None:
    session.stay("server", "carteiro serve")
    session.terminals["server"][0].until(READY)


def contacts(session: Session) -> list[str]:
    """Return the names of the contacts, asked with the key of the reader."""
    session.type('curl -sf "$URL/api/contacts" -H "X-API-Key: $KEY"')
    return [one["name"] for one in json.loads(session.printed)["data"]]


def of_kind(page: str, *kinds: str) -> list[Block]:
    return [block for block in blocks(page) if block.kind in kinds and block.language != "step"]


@pytest.mark.proof
async def test_the_commands_of_back_up_restore_and_copy(
    session: Session, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    url = await postgres_server.empty()
    await asyncio.to_thread(_back_up, session, url)
    await asyncio.to_thread(_on_a_new_machine, session, tmp_path / "new")
    await postgres_server.drop(url)


def _back_up(session: Session, url: str) -> None:
    backups = session.folder / "backups"
    done = []
    for block in of_kind(BACK_UP, "", "prints", "stopped", "compose", "not run"):
        text = block.text.replace("/var/backups/carteiro", str(backups))
        text = text.replace("postgresql://carteiro@db.example.com/carteiro", shlex.quote(url))
        if block.kind == "prints":
            session.prints(block)
        elif block.kind == "stopped":
            session.terminals["server"][0].end()
            session.type(text, str(block))
            printed = session.printed
            if "carteiro copy" in text:
                session.environment["CARTEIRO_DATABASE__URL"] = url
                session.environment["CARTEIRO_SECRETS__KEY_FILE"] = "data/carteiro.key"
            session.restart("server", READY)
            assert contacts(session) == ["Bruno"]
            session.printed = printed
        elif block.kind == "compose":
            _compose(session, text)
        elif block.kind == "not run":
            backups.mkdir()
            [every_day] = re.findall(r"root (carteiro backup .*)", text)
            session.type(every_day.replace("\\%", "%"), str(block))
            assert len([*backups.iterdir()]) == 1
        else:
            session.type(text, str(block))
        done.append(block.kind)
    assert [done.count(kind) for kind in ("stopped", "compose", "not run")] == [2, 2, 1]
    assert len([*session.folder.glob("backups-*.backup")]) == 1
    with closing(sqlite3.connect(session.folder / "look.db")) as db:
        assert db.execute("select distinct state from webhooks").fetchall() == [("paused",)]


def _compose(session: Session, text: str) -> None:
    """Run commands of compose; a script stands in for it, and the server is its service."""
    folder = session.folder / "bin"
    folder.mkdir(exist_ok=True)
    shutil.copy(HERE / "compose.sh", folder / "docker")
    (session.folder / "compose.env").write_text(f"HERE={session.folder}\nSERVICE=carteiro\n")
    server = session.terminals["server"][0].process
    pid = session.folder / "server.pid"
    pid.write_text(str(server.pid))
    session.type(f'docker() {{ sh {folder / "docker"} "$@"; }}\n{text}', BACK_UP)
    if "compose start" in text:
        assert server.wait(HANG_SECONDS) == 0
        session.type('until curl -sf "$URL/readyz"; do sleep 0.1; done')
        assert contacts(session) == ["Bruno"]
        session.type("sh bin/docker compose stop carteiro")
        session.restart("server", READY)


def _on_a_new_machine(session: Session, folder: Path) -> None:
    """Follow the section alone, with what a backup and its note say to keep."""
    folder.mkdir()
    new = Session(folder, activated=True)
    shutil.copy(session.folder / "monday.backup", folder)
    shutil.copy(session.folder / "data" / "carteiro.key", folder)
    session.type('printf %s "$KEY"')
    new.environment |= LOCAL | {"URL": new.url, "KEY": session.printed}
    try:
        [block] = of_kind(BACK_UP, "new machine")
        new.run(block)
        serve(new)
        assert contacts(new) == ["Bruno"]
        # Its key file opens the secret of the webhook; nothing listens at the URL.
        new.type(f"carteiro doctor {session.webhook.rpartition('/')[2]} || true")
        assert "Connection refused" in new.printed, new.printed
    finally:
        new.close()


@pytest.mark.proof
@pytest.mark.parametrize("release", sorted({file.name[:7] for file in DUMPS.glob("*.sql")}))
def test_the_commands_of_an_upgrade(release: str, tmp_path: Path) -> None:
    session = Session(tmp_path, activated=True)
    data = tmp_path / "data"
    data.mkdir(0o700)
    with closing(sqlite3.connect(data / "carteiro.db")) as db:
        db.executescript((DUMPS / f"{release}.sqlite.sql").read_text())
    (data / "carteiro.db").chmod(0o600)
    shutil.copy(DUMPS / "test.key", data / "carteiro.key")
    (data / "carteiro.key").chmod(0o600)
    session.environment["URL"] = session.url
    try:
        [block] = of_kind(UPGRADE, "older")
        session.run(block)
        assert "The configuration is valid.\n" in session.printed
        assert "applied 00" in session.printed
        serve(session)
        session.type('curl -sf "$URL/readyz"')
        assert json.loads(session.printed) == {"status": "ready"}
    finally:
        session.close()


def test_each_command_within_a_sentence_is_one_of_the_program() -> None:
    known = {command.words for command in COMMANDS}
    found = [shlex.split(words)[1:] for page in PAGES for words in INLINE.findall(text_of(page))]
    # A name alone, or all words that it needs.
    given = [words for words in found if " ".join(words) not in known and words != ["--version"]]
    assert ["serve", "--port", "8081"] in given
    for words in given:
        arguments, unknown = build_parser().parse_known_args(words)
        assert not unknown, words
        assert arguments.command is not None, words


TROUBLES = (
    ("chmod o+r data/carteiro.key", "is readable by every user; run: chmod o-rwx data/carteiro.key",
     "chmod o-rwx data/carteiro.key"),
    ("touch data/carteiro.db.copied", "delete data/carteiro.db.copied",
     "rm data/carteiro.db.copied"),
    ("mv data/carteiro.key key", "the key file data/carteiro.key is missing; restore it",
     "mv key data/carteiro.key"),
    ("CARTEIRO_DATABASE__URL=sqlite:///no.db CARTEIRO_SECRETS__KEY_FILE=key carteiro secrets init\n"
     "mv data/carteiro.key old; mv key data/carteiro.key", "does not belong to the database",
     "mv old data/carteiro.key"),
    ("printf '[database]\nurl = \"sqlite:///dta/carteiro.db\"\n' > config.local.toml",
     "there is no folder dta; create it, or correct database.url", "rm config.local.toml"),
    ("printf '[egress]\nca_file = \"none.pem\"\n' > config.local.toml", "cannot be read: ",
     "rm config.local.toml"),
    ("rm data/carteiro.key", "the key file data/carteiro.key is missing; restore it",
     "carteiro secrets init --give-up-secrets"),
)  # fmt: skip
"""Why a start fails, what the page has of the message, and what it says to do."""


@pytest.mark.proof
async def test_a_start_that_fails_goes_on_as_the_page_says(session: Session) -> None:
    await asyncio.to_thread(_troubles, session)


def _troubles(session: Session) -> None:
    page = text_of(TROUBLESHOOT)
    for cause, message, fix in TROUBLES:
        assert message in page, message
        session.terminals["server"][0].end()
        session.type(cause)
        session.type("carteiro serve > said 2>&1 && exit 9 || cat said")
        assert message in session.printed, session.printed
        session.type(fix)
        session.restart("server", READY)
    assert contacts(session) == ["Bruno"]


def test_what_it_does_not_do_is_still_so() -> None:
    for variable, value in (
        ("SERVER__PUBLIC_URL", "https://example.com/crm"), ("DATABASE__URL", "mysql://db/crm"),
    ):  # fmt: skip
        with pytest.raises(ConfigFaults):
            load(None, {f"CARTEIRO_{variable}": value})
    openapi = document(ROUTES)
    assert "post" not in openapi["paths"]["/api/webhooks"]
    schemas = openapi["components"]["schemas"]
    currencies = [schema for name, schema in schemas.items() if name.endswith("Currency")]
    assert currencies
    assert all(schema["enum"] == ["BRL"] for schema in currencies), currencies
