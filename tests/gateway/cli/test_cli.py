"""The command line: help, results on standard output, one clear line for each error."""

import asyncio
import os
import re
import shlex
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from gateway import texts
from gateway.__main__ import main
from gateway.cli import arguments, language
from gateway.cli.command_line import COMMANDS, GROUPS, build_parser
from tests.support.databases import SqliteFiles
from tests.support.process import command, environment

EMAIL = "maria@example.com"
FILES = SqliteFiles()


def one_line(text: str, *words: str) -> None:
    assert text.count("\n") == 1, text
    assert text.startswith("carteiro: ")
    assert "Traceback" not in text
    for word in words:
        assert word in text, (word, text)


def add_user(folder: Path, email: str = EMAIL) -> str:
    if not (file := folder / "carteiro.db").exists():
        asyncio.run(FILES.fresh(folder))
        (folder / "test.db").rename(file).chmod(0o600)
    done = command(
        "user", "add", email, "--name", "Maria", "--password-stdin",
        folder=folder, stdin="correct horse\n",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_every_command_has_help_with_an_example_that_parses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = build_parser()
    for each in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            parser.parse_args([*each.words.split(), "--help"])
        assert ended.value.code == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert " ".join(each.example.split()) in shown
        program, *example = shlex.split(each.example)
        assert program == "carteiro"
        assert parser.parse_args(example).command is each


def test_commands_speak_the_language_of_the_locale() -> None:
    for given, code in (
        ({}, "en"), ({"LANG": "C.UTF-8"}, "en"), ({"LANG": "pt_BR.UTF-8"}, "pt-BR"),
        ({"LANG": "pt_PT.UTF-8"}, "pt-BR"), ({"LANG": "pt_BR", "LC_MESSAGES": "en_US"}, "en"),
        ({"LANG": "pt_BR", "LC_MESSAGES": "pt_BR", "LC_ALL": "C"}, "en"),
        ({"LANG": "pt_BR", "LC_ALL": ""}, "pt-BR"), ({"LANG": "ptolemy"}, "en"),
    ):  # fmt: skip
        assert language.code(given) == code, given
    words = [command.words.replace(" ", "_") for command in COMMANDS] + list(GROUPS)
    known = {f"command.{one}" for one in (*words, "product", "example")}
    assert {key for key in texts.own_keys("pt-BR") if key.startswith("command.")} == known


def test_invalid_arguments_exit_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["serfe"], ["user"], ["user", "add"], ["serve", "--role", "x"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["serve", "--prot", "3"], "unknown option --prot; did you mean --port?"),
        (["serve", "--nothing"], "unknown option --nothing\n"),
        (["key", "revoke", EMAIL, "crt_4kYb91Qxsecret"], "too many arguments; it takes KEY only"),
        (["openapi", "out.json"], "too many arguments; it takes options only"),
        (["user", "add", EMAIL], "--name"),
        (["user", "--what", "list"], "unknown option --what"),
        (["serve", "--role", "wroker"], "unknown --role: wroker; did you mean worker?"),
    ],
)
def test_a_usage_error_is_reported_by_the_command_with_its_example(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    shown = capsys.readouterr().err
    [command] = [c for c in COMMANDS if " ".join(words).replace("--what ", "").startswith(c.words)]
    assert shown.startswith(f"usage: carteiro {command.words} ")
    assert f"carteiro {command.words}: error: " in shown
    assert told in shown
    assert shown.endswith(f"\nExample: {command.example}\n")
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("bacup x", "unknown COMMAND: bacup; did you mean backup?"),
        ("webhook list", "unknown COMMAND: webhook; did you mean webhooks?"),
        ("user lst", "unknown VERB: lst; did you mean list?"),
        ("user frobnicate", "unknown VERB: frobnicate; there are add, list, set,"),
    ],
)
def test_an_unknown_command_names_the_nearest_one(
    words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words.split())
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("shell", arguments.SHELLS)
def test_a_shell_completes_commands_options_and_files(
    shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.toml").write_text("broken")
    assert main(["--config", str(tmp_path / "config.toml"), "completion", shell]) == 0
    script = capsys.readouterr().out
    assert "carteiro" in script
    assert "signing-keys" in script
    if shell == "bash":
        (tmp_path / "c").write_text(script)
        asked = f'source {tmp_path}/c; COMP_CWORD=$1; shift; COMP_WORDS=(carteiro "$@");'
        for words, completed in (
            (["1", "ba"], "backup"), (["2", "user", "set-p"], "set-password"),
            (["2", "serve", "--po"], "--port"),
            (["2", "restore", f"{tmp_path}/con"], "config.toml"),
        ):  # fmt: skip
            shown = subprocess.run(
                ["bash", "-c", f"{asked} _shtab_carteiro; echo ${{COMPREPLY[@]}}", "bash", *words],
                capture_output=True, text=True, check=True, timeout=60,
            )  # fmt: skip
            assert completed in shown.stdout, (words, shown)


def test_a_user_has_a_name_and_a_time_zone(tmp_path: Path) -> None:
    made = command(
        "user", "add", EMAIL, "--name", "Maria", "--timezone", "Asia/Tokyo", "--password-stdin",
        "--language", "pt-BR", folder=tmp_path, stdin="correct horse\n",
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    with closing(sqlite3.connect(tmp_path / "carteiro.db")) as db:
        [(language, stages)] = db.execute(
            "select language, stages from users join pipelines on owner_id = id"
        )
    assert (language, "Contato" in stages) == ("pt-BR", True)
    done = command("user", "set", EMAIL, "--name", "Ana", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{EMAIL} is Ana, in Asia/Tokyo.\n")
    done = command("user", "set", EMAIL, "--timezone", "UTC", folder=tmp_path)
    assert done.stdout == f"{EMAIL} is Ana, in UTC.\n"
    for words, told in (
        (("set", EMAIL), "--name or --timezone"),
        (("set", EMAIL, "--timezone", "Mars"), "'Mars' is not an IANA time zone"),
        (("set", EMAIL, "--name", " "), "--name must be"),
        (("set", "x@y.zz", "--name", "X"), "no account x@y.zz"),
        (("add", "b@y.zz", "--name", "B", "--timezone", "utc"), "'utc' is not an IANA time zone"),
    ):
        refused = command("user", *words, folder=tmp_path)
        assert refused.returncode == 1
        one_line(refused.stderr, told)


def test_faults_of_users_and_keys(tmp_path: Path) -> None:
    add_user(tmp_path)
    again = ("user", "add", "Maria@Example.COM", "--name", "M", "--password-stdin")
    done = command(*again, folder=tmp_path, stdin="correct horse\n")
    assert done.returncode == 1
    one_line(done.stderr, f"an account {EMAIL} already exists", "user set-password")
    for words, stdin, said in (
        (("user", "add", "a@b.co", "--name", "M", "--password-stdin"), "short\n", "8 to 128"),
        (("user", "add", "a@b.co", "--name", "M", "--password-stdin"), "Sunshine\n", "too common"),
        (("user", "set-password", EMAIL, "--password-stdin"), "password1\n", "too common"),
        (("user", "add", "a@b.co", "--name", "M"), "", "--password-stdin"),
        (
            ("user", "add", "nonsense", "--name", "M", "--password-stdin"), "long enough\n",
            "'nonsense' is not an email address such as",
        ),
        (("user", "add", "a@b.co", "--name", " ", "--password-stdin"), "long enough\n", "--name"),
        (("key", "add", "nobody@example.com", "--name", "x"), "", "no account"),
        (("key", "add", EMAIL, "--name", ""), "", "--name"),
        (("key", "add", EMAIL, "--name", "x", "--expires-days", "0"), "", "--expires-days"),
        (("user", "disable", "nobody@example.com"), "", "no account"),
        (("user", "set-password", "x@y.co", "--password-stdin"), "long enough\n", "no account"),
        # Without a terminal: the address is checked before the password is asked for.
        (("user", "set-password", "x@y.co"), "", "no account x@y.co"),
        (("user", "add", EMAIL, "--name", "M"), "", "already exists"),
    ):  # fmt: skip
        done = command(*words, folder=tmp_path, stdin=stdin)
        assert done.returncode == 1, words
        assert done.stdout == ""
        one_line(done.stderr, said)


@pytest.mark.parametrize(
    "words",
    [("user", "list"), ("user", "set", EMAIL, "--name", "M"), ("user", "disable", EMAIL),
     ("user", "enable", EMAIL), ("user", "set-password", EMAIL), ("key", "list", EMAIL),
     ("key", "add", EMAIL, "--name", "x"), ("key", "revoke", "crt_4kYb91Qx")],
)  # fmt: skip
def test_commands_about_existing_accounts_create_no_database(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    url = "sqlite:///data/carteiro.db"
    done = command(*words, folder=tmp_path, CARTEIRO_DATABASE__URL=url)
    assert (done.returncode, done.stdout) == (1, "")
    one_line(done.stderr, "there is no database data/carteiro.db", "carteiro user add")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "data").mkdir(0o700)
    (tmp_path / "data" / "carteiro.db").touch(0o600)
    done = command(*words, folder=tmp_path, CARTEIRO_DATABASE__URL=url)
    assert (done.returncode, done.stdout) == (1, "")
    one_line(done.stderr, "the database is empty", "carteiro user add")


def test_passwords_and_disabling(tmp_path: Path) -> None:
    add_user(tmp_path)
    done = command(
        "user", "set-password", EMAIL, "--password-stdin", folder=tmp_path, stdin="another horse\n"
    )
    assert (done.returncode, done.stdout) == (0, f"The password of {EMAIL} is changed.\n")
    assert command("user", "disable", EMAIL, folder=tmp_path).returncode == 0
    done = command("key", "add", EMAIL, "--name", "x", folder=tmp_path)
    assert done.returncode == 1
    one_line(done.stderr, "disabled")


def test_migrate_and_a_schema_that_is_older(tmp_path: Path) -> None:
    done = command("migrate", folder=tmp_path)
    assert done.returncode == 0
    assert re.fullmatch(
        r"Created the database sqlite://\S+ with the schema outbox \d{4}, gateway \d{4}\.\n",
        done.stdout,
    )
    done = command("migrate", folder=tmp_path)
    assert done.stdout == "The schema is up to date.\n"
    with closing(sqlite3.connect(tmp_path / "carteiro.db")) as database, database:
        database.execute("delete from schema_migrations where component = 'gateway'")
    older = command("key", "add", EMAIL, "--name", "x", folder=tmp_path)
    assert older.returncode == 1
    one_line(older.stderr, "older", "carteiro migrate")


def make_newer(folder: Path) -> None:
    """Make a database of a newer program."""
    assert command("migrate", folder=folder).returncode == 0
    with closing(sqlite3.connect(folder / "carteiro.db")) as database, database:
        database.execute(
            "insert into schema_migrations (component, number, name, checksum, applied_at)"
            " values ('outbox', 9999, 'x', 'x', 0)"
        )


def test_a_schema_newer_than_the_program(tmp_path: Path) -> None:
    make_newer(tmp_path)
    for words in (("migrate",), ("key", "add", EMAIL, "--name", "x")):
        newer = command(*words, folder=tmp_path)
        assert newer.returncode == 1
        one_line(newer.stderr, "newer")


def test_the_configuration_is_checked(tmp_path: Path) -> None:
    done = command("check-config", folder=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "The configuration is valid.")
    (tmp_path / "config.toml").write_text("[server]\nport = 'x'\nprot = 1\n")
    for words in (("check-config",), ("--config", "config.toml", "migrate")):
        done = command(*words, folder=tmp_path, CARTEIRO_LIMITS__BURST="0")
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 3
        assert all(line.startswith("carteiro: ") for line in done.stderr.splitlines())
    done = command("--config", "none.toml", "check-config", folder=tmp_path)
    assert done.returncode == 2
    one_line(done.stderr, "none.toml", "cannot be read")
    (tmp_path / "other.toml").write_text("[server]\nport = 1\n")
    done = command("check-config", folder=tmp_path, CARTEIRO_CONFIG="other.toml")
    assert done.returncode == 0


def test_check_config_names_what_it_read_and_no_secret(tmp_path: Path) -> None:
    where, key = tmp_path / "url", tmp_path / "carteiro.key"
    where.write_text("sqlite:///hush.db")
    settings = {
        "CARTEIRO_DATABASE__URL": "sqlite:///default.db",
        "CARTEIRO_DATABASE__URL_FILE": str(where),
        "CARTEIRO_METRICS__TOKEN": "hush", "CARTEIRO_SECRETS__KEY_FILE": str(key),
        "CARTEIRO_SERVER_PORT": "9", "CARTEIRO_PORT": "tcp://10.0.0.1:80",
    }  # fmt: skip
    (tmp_path / "config.local.toml").write_text("[server]\nport = 1\n")
    done = command("check-config", folder=tmp_path, **settings)
    said = done.stdout.splitlines()
    assert f"Files: {tmp_path / 'config.local.toml'}." in said
    [variables] = [line for line in said if line.startswith("Variables: ")]
    for name in (f"DATABASE__URL_FILE (reads {where})", "METRICS__TOKEN,", "SECRETS__KEY_FILE"):
        assert f"CARTEIRO_{name}" in variables
    assert [line for line in said if line.startswith("Not used: ")] == [
        "Not used: CARTEIRO_DATABASE__URL, because CARTEIRO_DATABASE__URL_FILE is set.",
        "Not used: CARTEIRO_SERVER_PORT, which is no setting; did you mean CARTEIRO_SERVER__PORT?",
    ]
    assert "hush" not in done.stdout
    done = command("check-config", folder=tmp_path, CARTEIRO_CONFIG="config.local.toml")
    assert f"Files: {tmp_path / 'config.local.toml'}." in done.stdout


def test_a_port_must_be_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    parser = build_parser()
    for port in ("-1", "65536", "x", "", "1.5", "١"):
        for name in ("serve", "demo"):
            with pytest.raises(SystemExit) as ended:
                parser.parse_args([name, f"--port={port}"])
            assert ended.value.code == 2
            assert "from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"DATABASE__URL": "postgresql://u@one,two:5433/n?target_session_attrs=read-write",
          "DATABASE__POOL_SIZE": "7"},
         "14 connections to PostgreSQL: 7 for requests, 2 for group commits, 2 for the drain, "
         "1 for its lease, 1 for signals, 1 for the leader's lock."),
        ({"DATABASE__URL": "postgresql://u@h/n", "SERVER__PROCESSES": "3"},
         "43 connections to PostgreSQL: 30 for requests, 6 for group commits, 2 for the drain, "
         "1 for its lease, 3 for signals, 1 for the leader's lock."),
    ],
)  # fmt: skip
def test_check_config_counts_the_connections_of_all_processes(
    tmp_path: Path, given: dict[str, str], told: str
) -> None:
    settings = {f"CARTEIRO_{name}": value for name, value in given.items()}
    done = command("check-config", folder=tmp_path, **settings)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == f"Each node needs up to {told}"


def test_a_direct_url_must_name_postgresql(tmp_path: Path) -> None:
    done = command("migrate", folder=tmp_path, CARTEIRO_DATABASE__DIRECT_URL="postgresql://u@h/n")
    assert done.returncode == 1
    one_line(done.stderr, "database.direct_url", "SQLite")
    done = command("migrate", folder=tmp_path, CARTEIRO_DATABASE__DIRECT_URL="sqlite:///x.db")
    assert done.returncode == 2
    one_line(done.stderr, "database.direct_url", "postgresql://")


def test_secrets_init_never_overwrites(tmp_path: Path) -> None:
    done = command("secrets", "init", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    made = tmp_path / "carteiro.key"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    content = made.read_bytes()
    done = command("secrets", "init", folder=tmp_path)
    assert done.returncode == 1
    one_line(done.stderr, "carteiro.key")
    assert made.read_bytes() == content
    where = tmp_path / "elsewhere" / "k"
    done = command("secrets", "init", folder=tmp_path, CARTEIRO_SECRETS__KEY_FILE=str(where))
    assert done.returncode == 0
    assert where.exists()


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    for url in (f"sqlite:///{tmp_path}/file/x.db", "sqlite:////proc/none/x.db"):
        done = command("migrate", folder=tmp_path, CARTEIRO_DATABASE__URL=url)
        assert done.returncode == 1, url
        one_line(done.stderr, "x.db")
    (tmp_path / "junk.db").write_bytes(b"this is no database at all" * 100)
    done = command(
        "migrate", folder=tmp_path, CARTEIRO_DATABASE__URL=f"sqlite:///{tmp_path}/junk.db"
    )
    assert done.returncode == 1
    one_line(done.stderr)


@pytest.mark.proof
def test_a_closed_output_pipe(tmp_path: Path) -> None:
    script = "carteiro check-config | true"
    env = environment(tmp_path) | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    (tmp_path / "carteiro").write_text('#!/bin/sh\nexec "$PYTHON" -m gateway "$@"\n')
    (tmp_path / "carteiro").chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, env=env | {"PYTHON": sys.executable},
        capture_output=True, text=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
