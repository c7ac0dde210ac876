"""`carteiro import` and `carteiro export`: a file in, the same file out, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from tests.support.process import carteiro, command, environment

OWNER = ("--owner", "ana@example.com")
FILE = 'name,email,phone\r\nAna,ana@x.com,"\'+55 11, home"\r\nBia,bia@x.com,\r\n'


def prepared(folder: Path) -> Path:
    added = command(
        "user", "add", "ana@example.com", "--name", "Ana", "--password-stdin", folder=folder,
        stdin="correct horse battery\n",
    )  # fmt: skip
    assert added.returncode == 0, added.stderr
    return folder / "carteiro.db"


def test_a_file_goes_in_and_out(tmp_path: Path) -> None:
    prepared(tmp_path)
    file = tmp_path / "leads.csv"
    file.write_text(FILE.replace(", home", "-1234"), newline="")
    words = ("import", str(file), "--type", "contacts", *OWNER)
    tried = carteiro(*words, "--dry-run", folder=tmp_path)
    assert tried.stdout == (
        "2 lines: 2 would be created, 0 would be updated, 0 unchanged, 0 faulty.\n"
    ), tried.stderr  # fmt: skip
    done = carteiro(*words, folder=tmp_path)
    assert done.stdout == "2 lines: 2 created, 0 updated, 0 unchanged, 0 faulty.\n"
    out = command("export", "contacts", *OWNER, folder=tmp_path)
    assert out.returncode == 0, out.stderr
    file.write_text(out.stdout, newline="")
    again = carteiro(*words, folder=tmp_path)
    assert again.stdout == "2 lines: 0 created, 0 updated, 2 unchanged, 0 faulty.\n"


def test_faulty_lines_and_wrong_words_are_told(tmp_path: Path) -> None:
    prepared(tmp_path)
    file = tmp_path / "leads.csv"
    file.write_text("Nome;E-mail\nAna;x\n;ana@x.com\n")
    words = ("import", str(file), "--type", "contacts", *OWNER)
    bad = carteiro(*words, "--columns", "Nome:name,E-mail:email", folder=tmp_path)
    assert bad.returncode == 1
    assert bad.stdout.splitlines() == [
        "line 2, E-mail: email: Send an e-mail address such as maria@example.com.",
        "line 3, Nome: name is required.",
        "2 lines: 0 created, 0 updated, 0 unchanged, 2 faulty.",
    ]
    assert bad.stderr == "carteiro: 2 lines are faulty; correct and import them again\n"
    for wrong, text in (
        (words, "No heading is the name of a field"),
        ((*words, "--columns", "x"), "Heading:field"),
        (("import", "none.csv", "--type", "contacts", *OWNER), "No such file"),
        (("import", str(file), "--type", "orders", *OWNER), "--type must be one of contacts"),
        (("export", "persons", *OWNER), "TYPE must be one of contacts"),
    ):
        told = carteiro(*wrong, folder=tmp_path)
        assert told.returncode == 1, told.stdout
        assert text in told.stderr


def test_ctrl_c_cancels_between_two_transactions(tmp_path: Path) -> None:
    database = prepared(tmp_path)
    file = tmp_path / "leads.csv"
    file.write_text("name\n" + "".join(f"Ana {n}\n" for n in range(50_000)))
    with subprocess.Popen(
        [sys.executable, "-m", "gateway", "import", str(file), "--type", "contacts", *OWNER],
        cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    ) as process:  # fmt: skip
        with sqlite3.connect(database) as db:
            while not db.execute("select 1 from contacts limit 1").fetchone():
                assert process.poll() is None
                os.sched_yield()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "lines imported, the import is cancelled" in err
    with sqlite3.connect(database) as db:
        [(state, created)] = db.execute("select state, created from imports")
        [(contacts,)] = db.execute("select count(*) from contacts")
        [(left,)] = db.execute("select count(*) from import_lines")
    assert (state, left) == ("cancelled", 0)
    assert 0 < created == contacts < 50_000
