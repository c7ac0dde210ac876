"""`carteiro signing-keys`: list and replace the public keys."""

from __future__ import annotations

import json

from tests.gateway.cli.test_cli_accounts import Run, add_user, output_of, refused, run

__all__ = ["run"]


def keys(run: Run) -> list[dict[str, str]]:
    lines = output_of(run, "signing-keys", "list", "--json").splitlines()
    return [json.loads(line) for line in lines]


def test_a_key_is_replaced_and_the_one_before_stays_for_a_day(run: Run) -> None:
    add_user(run)
    output_of(run, "secrets", "init")
    assert keys(run) == []
    said = output_of(run, "signing-keys", "rotate")
    [first] = keys(run)
    assert said.startswith(f"The key {first['id']} signs from now on.")
    assert (first["state"], "endsAt" in first) == ("current", False)
    assert first["publicKey"].startswith("whpk_")
    assert "for 24 hours" in output_of(run, "signing-keys", "rotate")
    second, replaced = keys(run)
    assert (second["state"], replaced["state"]) == ("current", "replaced")
    assert replaced == {**first, "state": "replaced", "endsAt": replaced["endsAt"]}
    output_of(run, "signing-keys", "rotate")
    assert "3 keys sign already" in refused(run, "signing-keys", "rotate")
    assert "have ended" in output_of(run, "signing-keys", "rotate", "--at-once")
    assert [key["state"] for key in keys(run)] == ["current", "ended", "ended", "ended"]
    heading, line, *_ = output_of(run, "signing-keys", "list").splitlines()
    assert heading.split() == ["ID", "PUBLIC", "KEY", "STATE", "CREATED", "ENDS"]
    assert line.split()[-1] == "-"
