"""A plain resource touches three places: its file, a line of the catalogue, a migration.

The test adds `suppliers` to a copy of the product, and calls every door of that copy.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from pathlib import Path

import aiohttp

import gateway
import outbox
from gateway.domain import catalogue
from gateway.domain.contacts import contacts
from gateway.records.values import formats
from tests.gateway.cli.test_cli import EMAIL
from tests.support.console import Forms
from tests.support.process import Serving, carteiro, serving_process

PACKAGE = Path(gateway.__path__[0])
DECLARATION = '''"""Suppliers: those whom an owner buys from."""

from {resource} import BY_NAME, BY_TIME, Field, Resource
from {formats} import email, title

SUPPLIERS = Resource(
    noun="supplier",
    plural="suppliers",
    table="suppliers",
    description="Somebody whom the owner buys from.",
    fields=(
        Field("name", "name", title(), "Name.", "Torrefação Sul", required=True),
        Field("email", "email", email(), "E-mail address.", "sul@example.com"),
    ),
    events={{"created": ("id", "name", "createdAt"), "deleted": ("id",)}},
    search=("name",),
    folded_sort="name",
    sorts=(*BY_TIME, BY_NAME),
)
'''
MIGRATION = """create table suppliers (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null, created_at bigint not null, updated_at bigint,
  name text not null, email text,
  folded text /*postgres collate "C"*/ not null, sort_name text /*postgres collate "C"*/ not null
);
"""


def with_suppliers(folder: Path) -> list[Path]:
    """Return a copy of the product with suppliers, and the changed files."""
    for package in (gateway, outbox):
        source = Path(package.__path__[0])
        shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__"))
    copied = folder / PACKAGE.name
    place = copied / Path(contacts.__file__).relative_to(PACKAGE).with_name("suppliers.py")
    module = ".".join(place.relative_to(folder).with_suffix("").parts)
    resource, form = type(contacts.CONTACTS).__module__, formats.__name__
    place.write_text(DECLARATION.format(resource=resource, formats=form))
    index = copied / Path(catalogue.__file__).relative_to(PACKAGE)
    text = index.read_text()
    last = text.index("    plain(EBOOKS),\n")
    line = f'    plain(importlib.import_module("{module}").SUPPLIERS),\n'
    index.write_text("import importlib\n" + text[:last] + line + text[last:])
    number = len(list((copied / "migrations").glob("[0-9]*"))) + 1
    migration = copied / "migrations" / f"{number:04d}_suppliers.sql"
    migration.write_text(MIGRATION)
    return [place, index, migration]


def test_suppliers(tmp_path: Path) -> None:
    code, data = tmp_path / "code", tmp_path / "data"
    data.mkdir()
    touched = with_suppliers(code)
    assert len(touched) == 3
    own = {"PYTHONPATH": str(code)}
    with serving_process(data, **own) as serving:
        user = ("user", "add", EMAIL, "--name", "Maria", "--password-stdin")
        done = carteiro(*user, folder=data, stdin="correct horse\n", **own)
        assert done.returncode == 0, done.stderr
        done = carteiro("key", "add", EMAIL, "--name", "test", folder=data, **own)
        by_rest(serving, {"X-API-Key": done.stdout.strip()})
        asyncio.run(in_the_console(serving))


def by_rest(serving: Serving, key: dict[str, str]) -> None:
    """Call each operation of a plain resource; check its events and its documentation."""
    path = "/api/suppliers"
    status, body, headers = serving.ask(path, method="POST", body={"name": "Sul"}, headers=key)
    made = json.loads(body)
    assert (status, made["name"], headers["ETag"]) == (201, "Sul", '"1"')
    one = f"{path}/{made['id']}"
    status, body, _ = serving.ask(path, method="POST", body={"email": "x"}, headers=key)
    assert (status, [fault["field"] for fault in json.loads(body)["details"]]) == (
        400, ["email", "name"],
    )  # fmt: skip
    assert serving.ask(one, headers=key)[0] == 200
    assert serving.ask(one, method="PUT", body={"email": "a@b.example"}, headers=key)[0] == 200
    status, body, _ = serving.ask(f"{path}?search=SUL&sort=name", headers=key)
    assert [found["email"] for found in json.loads(body)["data"]] == ["a@b.example"]
    assert serving.ask(one, method="DELETE", headers=key)[0] == 200
    assert serving.ask(one, headers=key)[0] == 404
    # An event is in the feed once the drain has seen it.
    end, names = time.monotonic() + 20, list[str]()
    while len(names) < 2 and time.monotonic() < end:
        events = json.loads(serving.ask("/api/events", headers=key)[1])["data"]
        names = [event["event"] for event in events]
    assert names == ["supplier.created", "supplier.deleted"]
    offered = json.loads(serving.ask("/api/webhooks", headers=key)[1])["availableEvents"]
    assert {"supplier.created", "supplier.deleted"} <= set(offered)
    document = json.loads(serving.ask("/api/openapi.json")[1])
    assert f"{path}/batch" in document["paths"]
    assert {"/api/export/suppliers.csv", "/api/import/suppliers"} <= set(document["paths"])
    assert {"get", "post"} <= set(document["paths"][path])
    assert {"get", "put", "patch", "delete"} <= set(document["paths"][f"{path}/{{id}}"])
    sample = document["webhooks"]["supplier.created"]
    assert "Torrefação Sul" in json.dumps(sample, ensure_ascii=False)


async def in_the_console(serving: Serving) -> None:
    """Create one by its form, and find it in the list."""
    path, url = "/console/suppliers", f"http://127.0.0.1:{serving.port}"
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(url, cookie_jar=jar) as browser:
        maria = Forms(browser)
        await maria.sign_in(EMAIL, "correct horse")
        assert f'href="{path}"' in (await maria.get("/console")).html
        made = await maria.submit(path, at=f"{path}/new", name="Leste <b>", email="leste@b.example")
        assert made.path == f"{path}/{made.id}?done=record_created"
        assert "Leste &lt;b&gt;" in made.html
        found = await maria.get(f"{path}?search=LESTE&sort=name&column=email")
        assert f'href="{path}/{made.id}"' in found.html
