"""The programs of docs/examples, each against a real server."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT
from tests.docs import test_receivers
from tests.docs.frameworks import FRAMEWORKS, compiled, printed, receiving, run
from tests.docs.languages import LANGUAGES
from tests.docs.test_receivers import EXPECTED, REASONS, Delivery, judged
from tests.support.node import package
from tests.support.process import Serving, carteiro, serving_process
from tests.support.requirements import need
from tests.support.typed_clients import codegen

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

EXAMPLES = ROOT / "docs" / "examples"
LEADS = "Nome;E-mail;Outra\nAna Lima;ana.lima@example.com;x\nBruno;bruno;y\n"

site = test_receivers.site
delivery = test_receivers.delivery


@dataclass(frozen=True)
class Programs:
    """The examples beside a generated client, and a server with one account."""

    server: Serving
    key: str
    folder: Path

    def run(self, *words: str) -> str:
        """Run a program to its end; return what it printed."""
        return run([*self.start, *words], self.folder, CARTEIRO_URL=self.server.url,
                   CARTEIRO_KEY=self.key)  # fmt: skip

    @property
    def start(self) -> Sequence[str]:
        return [codegen("python")] if (self.folder / "carteiro_client").exists() else [need("node")]

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

    def call(self, method: str, path: str, body: object = None) -> str:
        status, answer, _ = self.server.ask(
            path, method=method, body=body, headers={"X-API-Key": self.key}
        )
        assert status < 300, answer
        return answer.decode()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Serving, str]]:
    home = tmp_path / "server"
    home.mkdir()
    words = ("user", "add", "ana@example.com", "--name", "Ana", "--password-stdin")
    assert carteiro(*words, folder=home, stdin="correct horse battery\n").returncode == 0
    key = carteiro("key", "add", "ana@example.com", "--name", "run", folder=home).stdout.strip()
    with serving_process(home) as serving:
        yield serving, key


@pytest.fixture(params=["python", "typescript"])
def programs(
    request: pytest.FixtureRequest, server: tuple[Serving, str], tmp_path: Path
) -> Programs:
    """The examples of a language, beside the client that the README's line generates."""
    serving, key = server
    folder = tmp_path / "programs"
    shutil.copytree(EXAMPLES / request.param, folder)
    python, typescript = generating(serving.url)
    if request.param == "python":
        run([codegen(python[0]), *python[1:]], folder)
    else:
        node, name = need("node"), typescript[1]
        run([node, str(package(name) / "bin" / "run.js"), *typescript[2:]], folder)
        compiled(folder)
    return Programs(serving, key, folder)


def generating(url: str) -> list[list[str]]:
    """Return the two lines of the README that generate a client of a server."""
    text = (EXAMPLES / "README.md").read_text()
    [block] = re.findall("```sh\n(.*?)```", text, re.DOTALL)
    return [line.replace("$CARTEIRO_URL", url).split() for line in block.splitlines()]


def name_of(programs: Programs, name: str) -> str:
    python = (programs.folder / "carteiro_client").exists()
    return f"{name}.py" if python else f"{name.removesuffix('_contacts')}.js"


def test_a_generated_client_is_used(programs: Programs) -> None:
    said = programs.run(name_of(programs, "client"))
    assert "too late: precondition_failed" in said
    assert re.search(r"Coffee machines 12500\.5 \[ ?'Ana Lima' ?\]", said), said


def test_a_copy_follows_the_contacts(programs: Programs) -> None:
    made = [
        json.loads(programs.call("POST", "/api/contacts", {"name": f"P{number}"}))["id"]
        for number in range(120)
    ]
    sync = name_of(programs, "sync")
    assert programs.run(sync).strip() == "stored 120, removed 0"
    assert copied(programs) == programs.contacts()
    programs.call("PUT", f"/api/contacts/{made[3]}", {"name": "Changed"})
    programs.call("DELETE", f"/api/contacts/{made[5]}")
    programs.call("POST", "/api/contacts", {"name": "New"})
    fanned_out(programs)
    # The last one of the run before comes again.
    assert programs.run(sync).strip() == "stored 3, removed 1"
    assert copied(programs) == programs.contacts()
    assert programs.run(sync).strip() == "stored 1, removed 0"


def test_a_copy_is_compared_and_repaired(server: tuple[Serving, str], tmp_path: Path) -> None:
    serving, key = server
    path = EXAMPLES / "python" / "compare.py"
    assert len(path.read_text().splitlines()) <= 60

    def compare() -> str:
        return run([codegen("python"), str(path)], tmp_path, CARTEIRO_URL=serving.url,
                   CARTEIRO_KEY=key)  # fmt: skip

    def call(method: str, path: str, body: object = None) -> str:
        status, answer, _ = serving.ask(path, method=method, body=body, headers={"X-API-Key": key})
        assert status < 300, answer
        return answer.decode()

    made = [
        json.loads(call("POST", "/api/contacts", {"name": f"P{number}"}))["id"]
        for number in range(40)
    ]
    assert compare().strip() == "read 40 again after 1 digests"
    call("PUT", f"/api/contacts/{made[3]}", {"name": "Changed"})
    call("DELETE", f"/api/contacts/{made[5]}")
    added = json.loads(call("POST", "/api/contacts", {"name": "New"}))["id"]
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        copy.execute("delete from copies where id = ?", (made[7],))
        copy.execute("insert into copies values (?, 1, '')", ("0" * 24,))
    assert compare().strip() == "read 7 again after 1 digests"
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        held = dict(copy.execute("select id, contact from copies").fetchall())
    names = {one: json.loads(text)["name"] for one, text in held.items()}
    expected = {one: f"P{number}" for number, one in enumerate(made)}
    del expected[made[5]]
    assert names == expected | {made[3]: "Changed", added: "New"}
    assert compare().strip() == "read 0 again after 1 digests"


def fanned_out(programs: Programs) -> None:
    """Return when the feed has the delete."""
    end = time.monotonic() + 20
    while not json.loads(programs.call("GET", "/api/events?types=contact.deleted"))["data"]:
        assert time.monotonic() < end
        time.sleep(0.02)


def copied(programs: Programs) -> dict[str, str]:
    if (programs.folder / "copy.db").exists():
        with sqlite3.connect(programs.folder / "copy.db") as copy:
            return dict(copy.execute("select id, name from contacts").fetchall())
    copy_file = json.loads((programs.folder / "copy.json").read_text())
    return {key: one["name"] for key, one in copy_file["contacts"].items()}


def test_a_list_is_imported(programs: Programs) -> None:
    (programs.folder / "leads.csv").write_text(LEADS)
    said = programs.run(name_of(programs, "import_contacts"), "leads.csv", "Nome:name,E-mail:email")
    assert said.splitlines()[0].startswith("line 3, E-mail: "), said
    assert said.splitlines()[-1] == "done: 1 created, 0 updated, 1 left out"
    assert [*programs.contacts().values()] == ["Ana Lima"]


@pytest.mark.parametrize("kind", FRAMEWORKS)
async def test_a_receiver_takes_what_is_ours_once_and_nothing_else(
    delivery: Delivery, tmp_path: Path, kind: str
) -> None:
    async with receiving(kind, tmp_path, delivery.secret) as (process, url):
        assert await judged(url, delivery, REASONS) == EXPECTED
        said = await printed(process, tmp_path)
    assert said.count(f"contact.created {delivery.id}") == 1, said


def test_the_page_names_each_example() -> None:
    page = (EXAMPLES / "README.md").read_text()
    there = {
        path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.*") if path.is_file()
    }
    folders = "django|laravel|nextjs|python|rails|recipes|shop|typescript"
    named = set(re.findall(rf"\]\(((?:{folders})/[^)]+)\)", page))
    languages = {path for path in there if path.split("/")[1:2] and path.split("/")[1] in LANGUAGES}
    assert named == there - languages - {"README.md"}
