"""`carteiro webhooks`: export, plan and apply, as an operator and a CI job use them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

from tests.gateway.cli.test_cli import EMAIL
from tests.gateway.cli.test_cli_accounts import Run, add_user, output_of, run
from tests.support.process import environment
from tests.support.volume import fill, tmpfs
from tests.support.waiting import HANG_SECONDS

__all__ = ["run"]
OWNER = ("--owner", EMAIL)
FILE = """
[[webhook]]
name = "erp"
url = "https://hooks.example.com/erp"
events = ["contact.created"]
headers = { "Authorization" = { file = "token" } }
"""


def _prepare(run: Run) -> None:
    """Add the account, and the key that seals secrets: on PostgreSQL none is made by itself."""
    add_user(run)
    run("secrets", "init")


def test_a_file_is_planned_applied_and_exported(run: Run, tmp_path: Path) -> None:
    _prepare(run)
    file, secrets = tmp_path / "hooks.toml", tmp_path / "new.jsonl"
    file.write_text(FILE)
    missing = run("webhooks", "plan", str(file), *OWNER)
    assert missing.returncode == 1
    assert f"{file}: line 6, webhook 'erp', headers: " in missing.stderr
    assert "Nothing was changed: the file has 1 fault." in missing.stderr
    (tmp_path / "token").write_text("Bearer 1\n")
    planned = run("webhooks", "plan", str(file), *OWNER, "--exit-code", "--json")
    assert planned.returncode == 3
    plan = json.loads(planned.stdout)
    assert [step["act"] for step in plan["steps"]] == ["create"]
    assert "Bearer" not in planned.stdout
    marked = ("--plan", plan["plan"])
    done = output_of(
        run, "webhooks", "apply", str(file), *OWNER, *marked, "--secrets", str(secrets)
    )
    assert "+ create erp\n" in done
    assert "whsec_" not in done
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    [made] = map(json.loads, secrets.read_text().splitlines())
    assert made["secret"].startswith("whsec_")
    assert made["id"] in done

    stale = run("webhooks", "apply", str(file), *OWNER, *marked)
    assert (stale.returncode, stale.stdout) == (1, "")
    assert "make a new plan" in stale.stderr
    again = run("webhooks", "apply", str(file), *OWNER, "--secrets", str(secrets))
    assert (again.returncode, "exists" in again.stderr) == (1, True)
    same = run("webhooks", "plan", str(file), *OWNER, "--exit-code")
    assert (same.returncode, same.stderr) == (0, "")
    exported = output_of(run, "webhooks", "export", *OWNER)
    assert '"Authorization" = "***"' in exported
    file.write_text(exported)
    assert "1 unchanged" in output_of(run, "webhooks", "apply", str(file), *OWNER)

    file.write_text(exported.replace("hooks.example.com", "other.example.com"))
    moved = run("webhooks", "apply", str(file), *OWNER)
    assert moved.returncode == 1
    assert "enter the value of Authorization again, or remove the header" in moved.stderr

    file.write_text("")
    kept = output_of(run, "webhooks", "apply", str(file), *OWNER)
    assert "1 webhook is not in the file and stays; --prune deletes it." in kept
    gone = output_of(run, "webhooks", "apply", str(file), *OWNER, "--prune")
    assert "- delete erp" in gone
    assert "[[" not in output_of(run, "webhooks", "export", *OWNER)


def test_a_new_secret_is_printed_once(run: Run, tmp_path: Path) -> None:
    _prepare(run)
    file = tmp_path / "hooks.toml"
    file.write_text(FILE.replace("headers", "#"))
    done = output_of(run, "webhooks", "apply", str(file), *OWNER)
    assert done.count("whsec_") == 1
    assert "whsec_" not in output_of(run, "webhooks", "apply", str(file), *OWNER)


def test_an_output_that_takes_nothing_costs_neither_secrets_nor_the_rest(
    run: Run, tmp_path: Path, db_url: str
) -> None:
    _prepare(run)
    file, secrets = tmp_path / "hooks.toml", tmp_path / "new.jsonl"
    bare = FILE.replace("headers", "#")
    file.write_text(bare)
    output_of(run, "webhooks", "apply", str(file), *OWNER)
    file.write_text(bare.replace("erp", "crm"))
    read, write = os.pipe()
    os.close(read)
    words = ("webhooks", "apply", str(file), *OWNER, "--prune", "--secrets", str(secrets))
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *words],
        cwd=tmp_path, env=environment(tmp_path, CARTEIRO_DATABASE__URL=db_url), stdout=write,
        stderr=subprocess.PIPE, text=True, timeout=HANG_SECONDS,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
    [made] = map(json.loads, secrets.read_text().splitlines())
    assert (made["name"], made["secret"][:6]) == ("crm", "whsec_")
    left = output_of(run, "webhooks", "export", *OWNER)
    assert ('name = "crm"' in left, 'name = "erp"' in left) == (True, False)


def test_secrets_that_their_disk_does_not_take_are_printed(run: Run, tmp_path: Path) -> None:
    _prepare(run)
    file = tmp_path / "hooks.toml"
    file.write_text(FILE.replace("headers", "#"))
    with tmpfs(tmp_path, 1) as disk:
        ballast = fill(disk)
        secrets = disk / "new.jsonl"
        done = run("webhooks", "apply", str(file), *OWNER, "--secrets", str(secrets))
        assert [*disk.iterdir()] == [ballast]
    assert done.returncode == 1
    assert done.stderr == f"carteiro: cannot write {secrets}: No space left on device\n"
    assert (done.stdout.count("whsec_"), str(secrets) in done.stdout) == (1, False)
    assert 'name = "erp"' in output_of(run, "webhooks", "export", *OWNER)
