"""Users and API keys on the command line: listed, revoked, disabled and enabled again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from gateway.domain.accounts import api_keys
from outbox.ids import Ids
from tests.gateway.cli.test_cli import EMAIL, one_line
from tests.support.process import command

Run = Callable[..., CompletedProcess[str]]
LIST = ("key", "list", EMAIL)


@pytest.fixture
def run(tmp_path: Path, db_url: str) -> Run:
    """Run a command on each engine."""
    for file in tmp_path.iterdir():
        file.chmod(0o600)  # else each command warns

    def run(*words: str, stdin: str = "") -> CompletedProcess[str]:
        return command(*words, folder=tmp_path, stdin=stdin, CARTEIRO_DATABASE__URL=db_url)

    return run


def output_of(run: Run, *words: str, stdin: str = "") -> str:
    done = run(*words, stdin=stdin)
    assert (done.returncode, done.stderr) == (0, ""), words
    return done.stdout


def refused(run: Run, *words: str) -> str:
    done = run(*words)
    assert (done.returncode, done.stdout) == (1, ""), words
    one_line(done.stderr)
    return done.stderr


def add_user(run: Run, email: str = EMAIL, name: str = "Maria") -> str:
    words = ("user", "add", email, "--name", name, "--password-stdin")
    return output_of(run, *words, stdin="correct horse\n").strip()


def add_key(run: Run, name: str = "Zapier", *words: str) -> str:
    return output_of(run, "key", "add", EMAIL, "--name", name, *words).strip()


def test_a_disabled_user_is_enabled_again(run: Run) -> None:
    add_user(run)
    assert output_of(run, "user", "enable", EMAIL) == f"{EMAIL} is already enabled.\n"
    output_of(run, "user", "disable", EMAIL)
    assert "is disabled" in refused(run, "key", "add", EMAIL, "--name", "x")
    assert output_of(run, "user", "enable", EMAIL).startswith(f"{EMAIL} is enabled")
    assert json.loads(output_of(run, "user", "list", "--json"))["state"] == "active"
    add_key(run)
    assert "no account nobody@example.com" in refused(run, "user", "enable", "nobody@example.com")


def test_keys_are_listed_without_their_secret_part(run: Run) -> None:
    add_user(run)
    assert "no account nobody@example.com" in refused(run, "key", "list", "nobody@example.com")
    full = add_key(run, "Zapier", "--scope", "read", "--expires-days", "9")
    header, line = output_of(run, "key", "list", EMAIL).splitlines()
    assert " ".join(header.split()) == "KEY NAME SCOPES STATE CREATED LAST USED EXPIRES"
    assert line.split()[:4] == [full[: api_keys.VISIBLE], "Zapier", "read", "active"]
    assert line.split()[5] == "-"
    assert full[api_keys.VISIBLE :] not in output_of(run, "key", "list", EMAIL, "--json")
    listed = json.loads(output_of(run, "key", "list", EMAIL, "--json"))
    assert listed["visible"] == full[: api_keys.VISIBLE]
    assert (listed["scopes"], listed["state"]) == (["read"], "active")
    assert listed["expiresAt"] > listed["createdAt"]
    assert "lastUsedAt" not in listed


def test_a_key_is_revoked_by_any_of_its_names(run: Run) -> None:
    add_user(run)
    add_key(run, "kept")
    for naming in ("visible", "beginning", "id", "full"):
        full = add_key(run, naming)
        listed = [json.loads(one) for one in output_of(run, *LIST, "--json").splitlines()]
        visible = full[: api_keys.VISIBLE]
        others = [key["visible"] for key in listed if key["visible"] != visible]
        names = {
            "visible": visible,
            "beginning": next(
                full[:end] for end in range(5, 99)
                if not any(other.startswith(full[:end]) for other in others)
            ),
            "id": next(key["id"] for key in listed if key["visible"] == visible),
        }  # fmt: skip
        assert output_of(run, "key", "revoke", names.get(naming, full)) == (
            f"{visible} ({naming}, {EMAIL}) is revoked.\n"
        )
    assert output_of(run, "key", "revoke", visible).endswith("was already revoked.\n")
    listed = [json.loads(one) for one in output_of(run, *LIST, "--json").splitlines()]
    assert [key["name"] for key in listed if key["state"] != "revoked"] == ["kept"]


def test_a_beginning_of_several_keys_revokes_none(run: Run) -> None:
    add_user(run)
    visibles: dict[str, list[str]] = {}
    # Of 63 keys two begin with the same of 62 signs.
    while not (several := [found for found in visibles.values() if len(found) > 1]):
        visible = add_key(run)[: api_keys.VISIBLE]
        visibles.setdefault(visible[:5], []).append(visible)
    said = refused(run, "key", "revoke", several[0][0][:5])
    assert f"several keys begin with {several[0][0][:5]};" in said
    assert all(f"{visible} (Zapier, {EMAIL})" in said for visible in several[0])
    listed = map(json.loads, output_of(run, "key", "list", EMAIL, "--json").splitlines())
    assert {key["state"] for key in listed} == {"active"}
    # Of those that it begins a revoked one is not meant.
    output_of(run, "key", "revoke", several[0][0])
    assert output_of(run, "key", "revoke", several[0][0][:5]).startswith(several[0][1])


def test_what_names_no_key_says_how_one_is_named(run: Run) -> None:
    for text in ("", "Zapier", "crt_", "crt_%", "crt_a-b", "a" * 23, "crt_" * 99):
        assert "KEY must be the beginning of a key" in refused(run, "key", "revoke", text), text


def test_an_unknown_key_is_named_without_its_secret_part(run: Run) -> None:
    unknown = api_keys.make(Ids())
    said = refused(run, "key", "revoke", unknown)
    assert f"no key {unknown[: api_keys.VISIBLE]};" in said
    assert unknown[api_keys.VISIBLE :] not in said
    assert "carteiro key list" in refused(run, "key", "revoke", "f" * 24)
