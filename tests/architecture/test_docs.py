"""The docs are complete: each setting, command, metric, route and event of the code."""

from __future__ import annotations

import re
import tomllib
from typing import get_type_hints

from gateway import texts
from gateway.cli.command_line import COMMANDS
from gateway.domain.catalogue import RESOURCES
from gateway.rest.errors import STATUS
from gateway.rest.routes import ROUTES
from gateway.server.config import SECTIONS
from tests.architecture.tree import ROOT
from tests.support.proof import shards

EN = texts.of("en")


def page(name: str) -> str:
    [path] = (ROOT / "docs").rglob(f"{name}.md")
    return path.read_text()


def test_every_setting_is_in_config_toml_with_its_meaning() -> None:
    parts = re.split(r"^\[(\w+)\]$", (ROOT / "config.toml").read_text(), flags=re.MULTILINE)[1:]
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert sections.keys() == SECTIONS.keys()
    for section, struct in SECTIONS.items():
        lines = sections[section].splitlines()
        for key in get_type_hints(struct):
            places = [i for i, line in enumerate(lines) if re.match(rf"#? ?{key} =", line)]
            assert len(places) == 1, f"[{section}] {key}"
            said = lines[places[0] - 1].startswith("# ") or "  # " in lines[places[0]]
            assert said, f"[{section}] {key} has no comment"


def test_the_events_page_names_the_fields_that_filters_can_use() -> None:
    part = page("events").partition("## Filters on the record")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+) \| ([\w, ]+) \|$", part, re.MULTILINE)[1:]
    told = {noun: tuple(fields.split(", ")) for noun, fields in rows}
    assert told == {one.noun: tuple(one.filterable) for one in RESOURCES if one.filterable}


def test_the_page_of_bodies_names_every_header() -> None:
    source = (ROOT / "outbox/sending/request.py").read_text()
    sent = set(re.findall(r'"((?:X-Webhook|webhook)-[\w-]+)"', source))
    assert sent
    text = page("bodies")
    assert sorted(name for name in sent if f"`{name}`" not in text) == []


def test_the_page_of_routes_has_each() -> None:
    told = re.findall(r"^\| `([A-Z]+) (/api\S*)` \|", page("routes"), re.M)
    assert sorted(told) == sorted((method, path) for method, path, _ in ROUTES)


def test_the_page_of_errors_has_each_of_the_api_with_its_status() -> None:
    told = re.findall(r"^\| `(\w+)` \| (\d{3}) \|", page("errors"), re.M)
    assert {code: int(status) for code, status in told} == dict(STATUS)


def test_the_readme_names_commands_that_there_are() -> None:
    told = re.findall(r"carteiro ([a-z]+(?: [a-z-]+)?)`", (ROOT / "README.md").read_text())
    assert told
    assert set(told) <= {command.words for command in COMMANDS}


def test_the_configuration_page_equals_the_settings() -> None:
    parts = re.split(r"^## (\w+)$", page("configuration"), flags=re.MULTILINE)[1:]
    told = {
        f"{section}.{key}": (default, meaning)
        for section, text in zip(parts[::2], parts[1::2], strict=True)
        for key, default, meaning in re.findall(
            r"^\| `(\w+)` \| `([^`]+)` \| (\S.*) \|$", text, re.MULTILINE
        )
    }
    settings = {
        f"{section}.{key}": getattr(struct(), key)
        for section, struct in SECTIONS.items()
        for key in get_type_hints(struct)
    }
    assert told.keys() == settings.keys()
    assert {key: tomllib.loads(f"x = {default}")["x"] for key, (default, _) in told.items()} == {
        key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()
    }
    for key, (_, meaning) in told.items():
        units = [each for each in ("bytes", "seconds", "hours", "days") if key.endswith(f"_{each}")]
        assert all(unit in meaning.lower() for unit in units), key


def test_the_troubleshooting_page_has_every_outcome_and_failed_end() -> None:
    text = page("troubleshoot")
    outcomes = {key.removeprefix("outcome.") for key in EN if key.startswith("outcome.")}
    section = re.search(r"^## By outcome$(.*?)^## ", text, re.M | re.S)
    ends = re.search(r"^## By end of a delivery$(.*?)^## ", text, re.M | re.S)
    assert section
    assert ends
    assert set(re.findall(r"^\| `(\w+)` \|", section[1], re.M)) == outcomes
    told = set(re.findall(r"^\| `(\w+)` \|", ends[1], re.M))
    assert told == {"exhausted", "gone", "cancelled", "dead"}
    assert all(f"state.{state}" in EN for state in told)


def test_the_contributing_page_names_targets_that_there_are() -> None:
    told = re.findall(r"^\| `make ([a-z-]+)` \|", page("CONTRIBUTING"), re.M)
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)
    assert {"test", "test-fast", "proof", "check"} <= set(told) <= set(targets)


def test_the_contributing_page_equals_the_shards() -> None:
    told = re.findall(r"^\| `([a-z-]+)` \| (.+) \| (`.+`) \|$", page("CONTRIBUTING"), re.M)
    assert told == [
        (name, shard["says"].rstrip("."), ", ".join(f"`{room}`" for room in shard["rooms"]))
        for name, shard in shards().items()
    ]


def test_the_readme_contributing_and_ci_name_the_same_test_command() -> None:
    command = re.compile(r"`?make ((?:check )?test)`?$|`make ((?:check )?test)`", re.M)
    named = {
        name: {one or other for one, other in command.findall((ROOT / name).read_text())}
        for name in ("README.md", "README.pt-BR.md", "docs/CONTRIBUTING.md", ".ci/run")
    }
    assert named["README.md"] == named["README.pt-BR.md"] == {"test"}
    assert named[".ci/run"] == {"check test"} <= named["docs/CONTRIBUTING.md"]
