"""The pages of imports and exports: from the file of a spreadsheet to records, and back."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import aiohttp
import pytest

from gateway.domain.imports.importing import Importing
from gateway.server.http import multipart
from outbox.database.transaction import Tx
from outbox.errors import DatabaseUnavailable
from tests.gateway.rest.test_import_programs import EXPECTED, FOLDER, kind_of
from tests.support.console import Guest
from tests.support.drain import rows
from tests.support.site import Site

AT = "/console/import/contacts"
FILE = "Nome;E-mail;Telefone;Sobra\r\nAna;ana@x.com;+55 11;1\r\nBia;bia;;2\r\nCaio;;;3\r\n"


async def test_a_list_is_uploaded_checked_and_imported(console: Site, maria: Guest) -> None:
    db = console.db
    page = await maria.upload(AT, FILE.encode("cp1252"))
    here = page.path
    assert here.startswith("/console/imports/")
    assert page.test_id("import-progress") == "0 of 3 lines"
    for place, field in enumerate(("name", "email", "phone")):
        chosen = page.html.split(f'id="column-{place}"')[1].split("</select>")[0]
        assert f'<option value="{field}" selected>' in chosen
    assert "ana@x.com" in page.html
    columns: dict[str, Any] = {
        "column-0": "name",
        "column-1": "email",
        "column-2": "phone",
        "column-3": "",
        "mode": "strict",
    }
    checked = await maria.submit(here, act="check", **columns)
    assert 'hx-get="/console/imports/' in checked.html
    await Importing(db).run_once()
    page = await maria.get(here)
    assert page.test_id("import-checked") == "1 line has an error; it will be left out."
    assert (page.test_id("import-created"), page.test_id("import-faulty")) == ("2", "1")
    assert "Send an e-mail address" in page.html
    await maria.submit(here, act="check", **(columns | {"mode": "lenient"}))
    await Importing(db).run_once()
    page = await maria.get(here)
    assert page.test_id("import-checked") == (
        "1 cell has an error; its line will be imported without it."
    )
    assert "Import 3 lines" in page.html
    lines = await maria.get(f"{here}/lines.csv")
    assert lines.html == "\ufeffNome;E-mail;Telefone;Sobra\r\nBia;bia;;2\r\n"
    report = await maria.get(f"{here}/faults.csv", Accept_Language="pt-BR")
    assert report.html.splitlines() == [
        "\ufeffLinha;Coluna;Valor;O que fazer;Resultado",
        "3;E-mail;bia;Informe um e-mail, como maria@example.com.;Linha importada sem a célula",
    ]
    assert await db.read(rows, "select * from contacts") == []
    await maria.submit(here, act="start", **columns)
    await Importing(db).run_once()
    page = await maria.get(here)
    assert (page.test_id("import-created"), "column-0" in page.html) == ("2", False)
    made = await db.read(rows, "select name, phone, source from contacts order by name")
    assert [tuple(row[name] for name in ("name", "phone", "source")) for row in made] == [
        ("Ana", "+55 11", "import"), ("Caio", None, "import"),
    ]  # fmt: skip
    assert await db.read(rows, "select * from import_lines") == []
    assert here in (await maria.get(AT)).html
    file = await maria.get("/console/export/contacts.csv?search=ana")
    assert file.html.startswith("\ufeffid,name,email,phone,")
    assert ",Ana,ana@x.com,'+55 11," in file.html
    portuguese = await maria.get("/console/export/contacts.csv", Accept_Language="pt-BR")
    assert portuguese.html.startswith("\ufeffid;name;")


async def test_faults_are_told_in_the_language_of_the_page(console: Site, maria: Guest) -> None:
    file = (
        "Nome;E-mail;Empresa\r\nBia;bia;\r\n;ana@x.com;\r\nCaio;;Padaria São João\r\n"
        f"{'{i}' * 100};i@x.com;\r\n"
    )
    page = await maria.upload(AT, file.encode())
    columns: dict[str, Any] = {
        "column-0": "name", "column-1": "email", "column-2": "companyId",
    }  # fmt: skip
    await maria.submit(page.path, act="check", **columns)
    await Importing(console.db).run_once()
    portuguese = (await maria.get(page.path, Accept_Language="pt-BR")).html
    for told in (
        "Informe um e-mail, como",
        "Informe um nome.",
        "espera o id, não o nome",
        "Use no máximo 200 caracteres.",
    ):
        assert told in portuguese
    assert "Send an e-mail" not in portuguese
    english = (await maria.get(page.path)).html
    assert "The column takes ids, not names" in english
    assert "companyId:" not in english
    # Faults of the versions that stored no parameters, and the error alone.
    await console.db.write(_forget, "parameters = '{}'")
    older = (await maria.get(page.path, Accept_Language="pt-BR")).html
    assert "O texto é longo demais." in older
    await console.db.write(_forget, "field = null, code = null")
    older = (await maria.get(page.path, Accept_Language="pt-BR")).html
    assert "companyId: There is no company of yours with this id." in older


async def _forget(tx: Tx, what: str) -> None:
    await tx.run(f"update import_faults set {what}")


async def test_an_upload_stays_when_the_outcome_of_its_commit_is_unknown(
    console: Site, maria: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its person finds it among the latest imports, as after a browser that has gone."""
    real = console.db.write

    async def write(unit: Any, *args: Any, **kwargs: Any) -> Any:
        result = await real(unit, *args, **kwargs)
        if unit.__name__ == "complete":
            raise DatabaseUnavailable("outcome_unknown", "The answer of COMMIT was lost.")
        return result

    with monkeypatch.context() as patch:
        patch.setattr(console.db, "write", write)
        assert (await maria.upload(AT, FILE.encode("cp1252"))).status == 503
    [here] = re.findall(r"/console/imports/[0-9a-f]{24}", (await maria.get(AT)).html)
    assert (await maria.get(here)).test_id("import-progress") == "0 of 3 lines"
    columns: dict[str, Any] = {"column-0": "name", "column-1": "email"}
    await maria.submit(here, act="start", **columns)
    await Importing(console.db).run_once()
    assert (await maria.get(here)).test_id("import-created") == "3"


async def test_an_import_is_cancelled(console: Site, maria: Guest) -> None:
    page = await maria.upload(AT, FILE.encode())
    page = await maria.submit(f"{page.path}/cancel", at=page.path)
    assert "Import canceled" in page.html
    assert await console.db.read(rows, "select * from import_lines") == []
    late = await maria.post(page.path.partition("?")[0], [
        ("csrf_token", (await maria.get(AT)).csrf), ("act", "start"), ("column-0", "name"),
    ])  # fmt: skip
    assert (late.status, "The import is cancelled" in late.html) == (409, True)


async def test_columns_that_make_no_record_are_told(maria: Guest) -> None:
    page = await maria.upload(AT, FILE.encode())
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "No heading"), ({"column-2": "phone"}, "No column fills name"),
    ]  # fmt: skip
    for columns, text in cases:
        told = await maria.submit(page.path, act="check", **columns)
        assert told.status == 400
        assert text in (told.test_id("refusal") or ""), told.html
    nothing = await maria.get("/console/import/orders")
    assert nothing.status == 404


async def test_a_file_that_cannot_be_read_is_told_on_its_form(console: Site, maria: Guest) -> None:
    for language, data, text in (
        ("en", b"", "The file is empty"),
        ("en", b"name\nx\0\n", "line 2: This line has a NUL"),
        ("en", b"PK\x03\x04", "Excel workbook"),
        ("pt-BR", b"PK\x03\x04", "Linha 1: Este arquivo não é um CSV"),
        ("pt-BR", b'name\n"x"y\n', "Linha 2: "),
        ("pt-BR", b"name\n", "Linha 2: Faltam linhas"),
    ):
        page = await maria.upload(AT, data, Accept_Language=language)
        assert (page.status, page.path) == (400, AT)
        assert text in (page.test_id("refusal") or ""), page.html
    assert await console.db.read(rows, "select * from imports") == []


@pytest.mark.parametrize(
    "file", ["google-contacts.csv", "outlook-pt.csv", "contacts-4.vcf", "shopify-products.csv"]
)
async def test_the_files_of_programs_are_recognised_as_in_the_api(
    console: Site, maria: Guest, file: str
) -> None:
    expected, plural = EXPECTED[file], kind_of(file)
    page = await maria.upload(f"/console/import/{plural}", (FOLDER / file).read_bytes())
    headings = re.findall(r'<label for="column-[0-9]+"><bdi>(.*?)</bdi>', page.html)
    chosen = [
        "".join(re.findall('<option value="([^"]*)" selected>', select))
        for select in re.findall(r'<select id="column-[0-9]+".*?</select>', page.html, re.S)
    ]
    found = {unescape(h): one for h, one in zip(headings, chosen, strict=True) if one}
    assert found == expected["columns"]
    notices = re.findall('data-testid="import-notice">(.*?)</p>', page.html)
    assert [unescape(one) for one in notices] == expected["notices"]
    portuguese = await maria.get(page.path, Accept_Language="pt-BR")
    assert "As empresas são encontradas" in portuguese.html or plural == "products"
    columns: dict[str, Any] = {f"column-{place}": one for place, one in enumerate(chosen)}
    await maria.submit(page.path, act="start", **columns)
    await Importing(console.db).run_once()
    names = await console.db.read(rows, f"select name from {plural} order by sort_name")
    assert [row["name"] for row in names] == [one["name"] for one in expected["records"]]


async def test_an_upload_needs_the_token_of_our_form(
    console: Site, maria: Guest, rui: Guest
) -> None:
    others = (await rui.get(AT)).csrf
    for token in ("", "0" * 64, "é", others):
        page = await maria.upload(AT, FILE.encode(), token=token)
        assert (page.status, "This form has expired" in page.html) == (403, True)
    page = await maria.upload(AT, FILE.encode(), Origin="https://evil.example")
    assert page.status == 403
    mine = (await maria.get(AT)).csrf
    # The file first: the token that follows comes too late.
    form = aiohttp.FormData()
    form.add_field("file", b"name\nAna\n", filename="a.csv")
    form.add_field("csrf_token", mine)
    assert (await maria._ask("POST", AT, form, True, {})).status == 403
    broken = 'multipart/form-data; boundary="x"'
    start = f'--x\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n{mine}\r\n--x\r\n'
    for body in (
        b"", b"--x--\r\n", b"--y\r\n", start.encode(),
        (start + 'Content-Disposition: form-data; name="file"\r\n\r\nname\nAna\n').encode(),
        b'--x\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n' + b"x" * 99_999,
        b"--x\r\n" + b"h" * 99_999,
    ):  # fmt: skip
        page = await maria._ask("POST", AT, body, True, {"Content_Type": broken})
        assert page.status == 400, body[:200]
        assert "did not arrive whole" in page.html
    assert await console.db.read(rows, "select * from imports") == []


async def test_a_mark_in_pieces_ends_the_file() -> None:
    for size in range(1, 12):
        body = b"a\r\n--xb\r\r\n--x\r\n--mark--rest"

        async def pieces(body: bytes = body, size: int = size):  # type: ignore[no-untyped-def] # a generator
            for place in range(0, len(body), size):
                yield body[place : place + size]

        source = multipart._Source(pieces(), "")
        assert b"".join([one async for one in source.until(b"\r\n--mark")]) == (
            b"a\r\n--xb\r\r\n--x"
        )


async def test_a_list_of_faults_that_is_cut_says_so(console: Site, maria: Guest) -> None:
    file = "Nome,E-mail\r\n" + ",bia\r\n" * 150
    here = (await maria.upload(AT, file.encode())).path
    columns: dict[str, Any] = {"column-0": "name", "column-1": "email"}
    await maria.submit(here, act="check", **columns)
    await Importing(console.db).run_once()
    page = await maria.get(here)
    assert page.test_id("import-faulty") == "150"
    assert "The first 200 errors." in page.html
