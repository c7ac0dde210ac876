"""`carteiro import` and `carteiro export`: a file in, the same file out, and Ctrl-C."""

from __future__ import annotations

from pathlib import Path

from tests.support.process import carteiro, command

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
