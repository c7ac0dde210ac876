"""The programs of docs/examples, each against a real server."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from outbox.database.transaction import Tx
from outbox.ids import Ids
from outbox.webhooks.key_files import read_key_file
from tests.docs.languages import LANGUAGES
from tests.docs.receivers import EXAMPLES, compiled
from tests.support.deployed import opened
from tests.support.drain import add_webhook, inbox, rows
from tests.support.generators import codegen, run
from tests.support.node import package
from tests.support.process import Serving, command, serving_process
from tests.support.requirements import need

LOCAL = {"CARTEIRO_EGRESS__ALLOW": "127.0.0.1/32", "CARTEIRO_EGRESS__ALLOW_HTTP": "true"}
LEADS = "Nome;E-mail;Outra\nAna Lima;ana.lima@example.com;x\nBruno;bruno;y\n;;z\n"
"""The third line has an address that is none, which is left out of it; the fourth one nothing."""


APART = """
update contacts set created_at = created_at - 3600000000 - 120000000 *
  (select count(*) from contacts later where later.id > contacts.id)
"""
"""The contacts are an hour old and two minutes apart."""
LATE = """
update contacts set name = 'Late', version = version + 1, updated_at =
  (select max(coalesce(updated_at, created_at)) - 20000000 from contacts) where id = '{}'
"""
"""A change that waited for 20 seconds, while others that began after it were stored and read."""


@dataclass(frozen=True)
class Programs:
    """The examples of a language in a folder, and a server with one account."""

    language: str
    folder: Path
    server: Serving
    key: str

    def run(self, name: str, *words: str, **more: str) -> str:
        """Run a program to its end; return what it printed."""
        python = self.language == "python"
        start = codegen("python") if python else need("node")
        file = f"{name}.py" if python else f"{name.removesuffix('_contacts')}.js"
        settings = {"CARTEIRO_URL": self.server.url, "CARTEIRO_KEY": self.key} | more
        return run([start, file, *words], self.folder, **settings).strip()

    def generate(self) -> None:
        """Make a client by the line of the README that does so."""
        text = (EXAMPLES / "README.md").read_text()
        [block] = re.findall("```sh\n(.*?)```", text, re.DOTALL)
        for line in block.splitlines():
            words = line.replace("$CARTEIRO_URL", self.server.url).split()
            if self.language == "python" and words[0] != "npx":
                run([codegen(words[0]), *words[1:]], self.folder)
            elif self.language != "python" and words[0] == "npx":
                tool = str(package(words[1]) / "bin" / "run.js")
                run([need("node"), tool, *words[2:]], self.folder)
                compiled(self.folder)

    def call(self, method: str, path: str, body: object = None) -> str:
        status, answer, _ = self.server.ask(
            path, method=method, body=body, headers={"X-API-Key": self.key}
        )
        assert status < 300, answer
        return answer.decode()

    def made(self, count: int) -> list[str]:
        """Create contacts; return their ids."""
        bodies = ({"name": f"P{number}"} for number in range(count))
        return [json.loads(self.call("POST", "/api/contacts", body))["id"] for body in bodies]

    def write(self, sql: str) -> None:
        """Write something into the database beside the server."""

        async def unit(tx: Tx) -> None:
            await tx.run(sql)

        async def beside() -> None:
            async with opened(f"sqlite:///{self.server.out.parent / 'carteiro.db'}") as db:
                await db.write(unit)

        asyncio.run(beside())

    def contacts(self) -> dict[str, str]:
        """Map the id of each contact to its name."""
        found: dict[str, str] = {}
        path = "/api/contacts?limit=100&fields=name"
        while path:
            page = json.loads(self.call("GET", path))
            found |= {one["id"]: one["name"] for one in page["data"]}
            onward = page.get("nextCursor", "")
            path = onward and f"/api/contacts?limit=100&fields=name&cursor={onward}"
        return found

    def copied(self) -> dict[str, str]:
        if self.language == "python":
            with sqlite3.connect(self.folder / "copy.db") as copy:
                return dict(copy.execute("select id, name from contacts").fetchall())
        copy_file = json.loads((self.folder / "copy.json").read_text())
        return {key: one["name"] for key, one in copy_file["contacts"].items()}


@pytest.fixture(params=["python", "typescript"])
def programs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Programs]:
    home = tmp_path / "server"
    home.mkdir()
    add = ("user", "add", "ana@example.com", "--name", "Ana", "--password-stdin")
    assert command(*add, folder=home, stdin="correct horse battery\n").returncode == 0
    key = command("key", "add", "ana@example.com", "--name", "run", folder=home).stdout.strip()
    folder = tmp_path / "programs"
    shutil.copytree(EXAMPLES / request.param, folder)
    with serving_process(home, **LOCAL) as serving:
        yield Programs(request.param, folder, serving, key)


@pytest.mark.timeout(600)
def test_a_list_is_imported_copied_and_changed_by_a_generated_client(programs: Programs) -> None:
    programs.generate()
    (programs.folder / "leads.csv").write_text(LEADS)
    said = programs.run("import_contacts", "leads.csv", "Nome:name,E-mail:email")
    assert said.splitlines()[0].startswith("line 3, E-mail: "), said
    assert said.splitlines()[-1] == "done: 2 created, 0 updated, 1 left out"
    assert sorted(programs.contacts().values()) == ["Ana Lima", "Bruno"]

    made = programs.made(120)
    programs.write(APART)
    assert programs.run("sync") == "stored 122, removed 0"
    assert programs.copied() == programs.contacts()
    programs.call("PUT", f"/api/contacts/{made[3]}", {"name": "Changed"})
    programs.call("DELETE", f"/api/contacts/{made[5]}")
    programs.call("POST", "/api/contacts", {"name": "New"})
    _until_the_feed_has_the_delete(programs)
    # Those of the last minute of the run before come again.
    assert programs.run("sync") == "stored 3, removed 1"
    assert programs.copied() == programs.contacts()
    programs.write(LATE.format(made[7]))
    assert programs.run("sync").endswith("removed 0")
    assert programs.copied() == programs.contacts()
    assert "Late" in programs.copied().values()

    said = programs.run("client")
    assert "too late: precondition_failed" in said
    assert re.search(r"Coffee machines 12500\.5 \[ ?'Ana Lima' ?\]", said), said


def _until_the_feed_has_the_delete(programs: Programs) -> None:
    end = time.monotonic() + 120
    while not json.loads(programs.call("GET", "/api/events?types=contact.deleted"))["data"]:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("programs", ["python"], indirect=True)
def test_a_copy_is_compared_and_repaired(programs: Programs) -> None:
    assert len((EXAMPLES / "python" / "compare.py").read_text().splitlines()) <= 60
    made = programs.made(40)
    assert programs.run("compare") == "read 40 again after 1 digests"
    programs.call("PUT", f"/api/contacts/{made[3]}", {"name": "Changed"})
    programs.call("DELETE", f"/api/contacts/{made[5]}")
    programs.call("POST", "/api/contacts", {"name": "New"})
    with sqlite3.connect(programs.folder / "copy.db") as copy:
        copy.execute("delete from copies where id = ?", (made[7],))
        copy.execute("insert into copies values (?, 1, '')", ("0" * 24,))
    assert programs.run("compare") == "read 7 again after 1 digests"
    with sqlite3.connect(programs.folder / "copy.db") as copy:
        held = dict(copy.execute("select id, contact from copies").fetchall())
    assert {one: json.loads(text)["name"] for one, text in held.items()} == programs.contacts()
    assert programs.run("compare") == "read 0 again after 1 digests"


MISSED = {2, 3, 17}
"""The numbers of the deliveries that the copy lacks; the last one is missing, too."""


@pytest.mark.parametrize("programs", ["python"], indirect=True)
async def test_a_copy_is_completed_by_number_and_feed(programs: Programs) -> None:
    assert len((EXAMPLES / "python" / "complete.py").read_text().splitlines()) <= 60
    home = programs.server.out.parent
    async with inbox() as box, opened(f"sqlite:///{home / 'carteiro.db'}") as db:
        [file] = home.rglob("carteiro.key")
        keys = read_key_file(file, Ids())
        [row] = await db.read(rows, "select id from users")
        webhook, _ = await add_webhook(
            db, keys, box.url, "contact.created", owner=row["id"], sequenced=True
        )
        await asyncio.to_thread(programs.made, 20)
        sent = {
            int(got.headers["X-Webhook-Sequence"]): got.body.decode() for got in await box.until(20)
        }
    with sqlite3.connect(programs.folder / "deliveries.db") as copy:
        copy.execute(
            "create table deliveries (sequence integer primary key, body text, state text)"
        )
        had = [(number, body) for number, body in sent.items() if number not in MISSED | {20}]
        copy.executemany("insert into deliveries values (?, ?, 'received')", had)
    said = await asyncio.to_thread(programs.run, "complete", WEBHOOK_ID=webhook)
    assert said == "20 numbers, 4 were missing, 3 requests"
    with sqlite3.connect(programs.folder / "deliveries.db") as copy:
        assert dict(copy.execute("select sequence, body from deliveries").fetchall()) == sent


def test_the_page_names_each_example() -> None:
    page = (EXAMPLES / "README.md").read_text()
    there = {
        path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.*") if path.is_file()
    }
    folders = "django|laravel|nextjs|python|rails|recipes|shop|typescript"
    named = set(re.findall(rf"\]\(((?:{folders})/[^)]+)\)", page))
    languages = {path for path in there if path.split("/")[1:2] and path.split("/")[1] in LANGUAGES}
    assert named == there - languages - {"README.md"}
