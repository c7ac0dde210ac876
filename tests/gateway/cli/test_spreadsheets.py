"""`carteiro import` and `carteiro export`: a file in, the same file out, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.gateway.cli.test_cli import EMAIL, add_user
from tests.gateway.rest.test_import_programs import EXPECTED, FOLDER, kind_of
from tests.support.process import command, environment
from tests.support.volume import fill, tmpfs
from tests.support.waiting import HANG_SECONDS, wait_until

OWNER = ("--owner", EMAIL)
FILE = 'name,email,phone\r\nAna,ana@x.com,"\'+55 11-1234"\r\nBia,bia@x.com,\r\n'


@pytest.mark.usefixtures("lines")
def test_the_files_of_programs_are_recognised_as_in_the_api(tmp_path: Path) -> None:
    add_user(tmp_path)
    for file in ("google-contacts.csv", "contacts-3.vcf", "nuvemshop-products.csv", "emails.csv"):
        expected, words = EXPECTED[file], ("--type", kind_of(file), *OWNER)
        done = command("import", str(FOLDER / file), *words, folder=tmp_path)
        total = len(expected["records"])
        line = "line" if total == 1 else "lines"
        assert done.stdout.splitlines() == [
            *expected["notices"],
            f"{total} {line}: {total} created, 0 updated, 0 unchanged, 0 faulty.",
        ], done.stderr
    odd = tmp_path / "odd.csv"
    odd.write_text("Nome;Valor (R$: 1,5);A=B\nAna;vip;ana@x.com\n")
    columns = ("Nome=name", "Valor (R$: 1,5)=tags", "A=B=email")
    options = (one for text in columns for one in ("--column", text))
    done = command("import", str(odd), "--type", "contacts", *OWNER, *options, folder=tmp_path)
    assert done.stdout == "1 line: 1 created, 0 updated, 0 unchanged, 0 faulty.\n", done.stderr
    out = command("export", "contacts", *OWNER, folder=tmp_path).stdout
    assert "Dra. Tainá Moura Quaresma,taina@aurora.example" in out
    assert "Ana,ana@x.com" in out


@pytest.mark.usefixtures("lines")
def test_faulty_lines_and_wrong_words_are_told(tmp_path: Path) -> None:
    add_user(tmp_path)
    file = tmp_path / "leads.csv"
    file.write_text("Nome;E-mail\nAna;x\n;ana@x.com\n")
    words = ("import", str(file), "--type", "contacts", *OWNER)
    columns = ("--columns", "Nome:name,E-mail:email", "--faulty", str(tmp_path / "mend.csv"))
    some = command(*words, *columns, "--dry-run", folder=tmp_path)
    assert some.stdout.splitlines() == [
        "line 2, E-mail: email: Send an e-mail address such as maria@example.com. "
        "(imported without it)",
        "line 3, Nome: name is required.",
        "2 lines: 1 would be created, 0 would be updated, 0 unchanged, 1 faulty.",
        "1 cell left out of imported lines.",
        f"The faulty lines are in {tmp_path / 'mend.csv'}.",
    ]
    assert some.stderr == "carteiro: 1 line is faulty; correct and import it again\n"
    assert (tmp_path / "mend.csv").read_text("utf-8-sig") == "Nome;E-mail\nAna;x\n;ana@x.com\n"
    bad = command(*words, *columns[:2], "--mode", "strict", folder=tmp_path)
    assert bad.returncode == 1
    assert bad.stdout.splitlines() == [
        "line 2, E-mail: email: Send an e-mail address such as maria@example.com.",
        "line 3, Nome: name is required.",
        "2 lines: 0 created, 0 updated, 0 unchanged, 2 faulty.",
    ]
    assert bad.stderr == "carteiro: 2 lines are faulty; correct and import them again\n"
    (tmp_path / "other.csv").write_text("foo\nx\n")
    other = ("import", str(tmp_path / "other.csv"), "--type", "contacts", *OWNER)
    for wrong, text in (
        (other, "No heading is the name of a field"),
        ((*words, "--column", "Nome"), "Heading=field"),
        ((*words, "--column", "Nom=name"), "it has Nome, E-mail"),
        ((*words, "--columns", "x"), "Heading:field"),
        (("import", "none.csv", "--type", "contacts", *OWNER), "No such file"),
        (("import", str(file), "--type", "orders", *OWNER), "--type must be one of contacts"),
        (("import", "orders", str(file), *OWNER), "TYPE must be one of contacts"),
        (("import", str(file), *OWNER), "enter TYPE and FILE"),
        (("import", "contacts", str(file), "--type", "contacts", *OWNER), "enter TYPE and FILE"),
        (("export", "persons", *OWNER), "TYPE must be one of contacts"),
    ):
        told = command(*wrong, folder=tmp_path)
        assert told.returncode == 1, told.stdout
        assert text in told.stderr


@pytest.mark.usefixtures("lines")
def test_the_file_of_faulty_lines_is_new_and_whole(tmp_path: Path) -> None:
    """It overwrites nothing, such as the file that is imported, and is there only with lines."""
    add_user(tmp_path)
    file, mend = tmp_path / "leads.csv", tmp_path / "mend.csv"
    file.write_text(text := "name,email\nAna,ana@x.com\n,x\n")
    words = ("import", str(file), "--type", "contacts", *OWNER, "--faulty")
    (tmp_path / "link.csv").symlink_to(file)
    for there in (file, tmp_path / "link.csv"):
        told = command(*words, str(there), folder=tmp_path)
        assert (told.returncode, told.stdout) == (1, "")
        assert told.stderr == f"carteiro: {there} already exists; choose another name\n"
    nowhere = command(*words, str(tmp_path / "none" / "mend.csv"), folder=tmp_path)
    assert nowhere.stderr.endswith("No such file or directory\n")
    assert (nowhere.returncode, nowhere.stdout) == (1, "")
    assert file.read_text() == text
    # None of these has begun an import.
    assert "1 created" in command(*words, str(mend), folder=tmp_path).stdout
    assert mend.read_text("utf-8-sig") == "name,email\n,x\n"
    mend.unlink()
    file.write_text("name,email\nBia,bia@x.com\n")
    assert command(*words, str(mend), folder=tmp_path).returncode == 0
    file.write_text("foo\nx\n")
    assert command(*words, str(mend), folder=tmp_path).returncode == 1
    assert [path.name for path in tmp_path.glob("mend*")] == []


@pytest.mark.slow
@pytest.mark.usefixtures("lines")
def test_a_full_disk_leaves_no_half_file_of_faulty_lines(tmp_path: Path) -> None:
    add_user(tmp_path)
    file = tmp_path / "leads.csv"
    file.write_text("name,email\n" + f",{'x' * 200}\n" * 100)
    with tmpfs(tmp_path, 1) as disk:
        ballast = fill(disk)
        # Room for a part of them.
        os.truncate(ballast, ballast.stat().st_size - 8_192)
        mend = str(disk / "mend.csv")
        done = command("import", "contacts", str(file), *OWNER, "--faulty", mend, folder=tmp_path)
        assert "100 faulty" in done.stdout
        assert done.stderr == f"carteiro: {mend} cannot be written: No space left on device\n"
        assert list(disk.iterdir()) == [ballast]


@pytest.mark.proof
def test_ctrl_c_cancels_between_two_transactions(tmp_path: Path) -> None:
    add_user(tmp_path)
    file = tmp_path / "leads.csv"
    file.write_text("name\n" + "".join(f"Ana {n}\n" for n in range(50_000)))
    words = ("import", str(file), "--type", "contacts", *OWNER)
    with (
        closing(sqlite3.connect(tmp_path / "carteiro.db")) as db,
        subprocess.Popen(
            [sys.executable, "-m", "gateway", *words], cwd=tmp_path, env=environment(tmp_path),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as process,
    ):  # fmt: skip
        wait_until(lambda: db.execute("select 1 from contacts limit 1").fetchone() is not None)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode == 130, err
        assert "lines imported, the import is cancelled" in err
        [(state, created)] = db.execute("select state, created from imports")
        [(contacts,)] = db.execute("select count(*) from contacts")
        [(left,)] = db.execute("select count(*) from import_lines")
    assert (state, left) == ("cancelled", 0)
    assert 0 < created == contacts < 50_000
