"""Stores on the command line: created and listed."""

from __future__ import annotations

import json

import pytest

from tests.gateway.cli.test_cli import EMAIL
from tests.gateway.cli.test_cli_accounts import Run, add_user, output_of, refused, run

__all__ = ["run"]
ADD = ("store", "add", "shop.example.com", "--owner", EMAIL, "--name", "Coffee Shop")


def test_a_store_is_created_and_listed(run: Run) -> None:
    add_user(run)
    assert output_of(run, "store", "list", EMAIL).split() == [
        "HOSTNAME", "NAME", "ALIASES", "STATE", "CREATED",
    ]  # fmt: skip
    store_id = output_of(
        run, *ADD, "--alias", "WWW.shop.example.com.", "--alias", "loja.example.com",
        "--origin", "https://Shop.example.com", "--origin", "http://localhost:3000",
    ).strip()  # fmt: skip
    second = output_of(
        run, "store", "add", "b.example", "--owner", EMAIL, "--name", "B\x1b[2J"
    ).strip()
    newest, oldest = map(json.loads, output_of(run, "store", "list", EMAIL, "--json").splitlines())
    assert oldest == {
        "id": store_id, "hostname": "shop.example.com", "name": "Coffee Shop",
        "aliases": ["www.shop.example.com", "loja.example.com"],
        "origins": ["https://shop.example.com", "http://localhost:3000"],
        "state": "active", "createdAt": oldest["createdAt"],
    }  # fmt: skip
    assert (newest["id"], newest["aliases"]) == (second, [])
    _, second_line, line = output_of(run, "store", "list", EMAIL).splitlines()
    assert line.startswith(
        "shop.example.com  Coffee Shop  www.shop.example.com,loja.example.com  active"
    )
    assert "\x1b" not in second_line
    assert second_line.split()[-3:-1] == ["-", "active"]


def test_more_stores_than_one_page(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.cli.store_commands.MOST", 2)
    add_user(run)
    names = [f"s{number}.example" for number in range(5)]
    for name in names:
        output_of(run, "store", "add", name, "--owner", EMAIL, "--name", "S")
    listed = map(json.loads, output_of(run, "store", "list", EMAIL, "--json").splitlines())
    assert [store["hostname"] for store in listed] == names[::-1]


def test_faults_name_their_option(run: Run) -> None:
    add_user(run)
    said = refused(
        run, "store", "add", "no host", "--owner", EMAIL, "--name", " ", "--alias", "a.example",
        "--alias", "-", "--origin", "shop.example.com",
    )  # fmt: skip
    for part in ("HOSTNAME 'no host': ", "--name '': ", "--alias '-': "):
        assert part in said
    assert "--origin 'shop.example.com': " in said
    assert output_of(run, "store", "list", EMAIL, "--json") == ""


def test_only_an_enabled_account_gets_a_store(run: Run) -> None:
    add_user(run)
    assert "no account nobody@example.com" in refused(run, "store", "list", "nobody@example.com")
    words = ("store", "add", "a.example", "--owner", "nobody@example.com", "--name", "S")
    assert "no account nobody@example.com" in refused(run, *words)
    output_of(run, "user", "disable", EMAIL)
    assert "is disabled" in refused(run, *ADD)
