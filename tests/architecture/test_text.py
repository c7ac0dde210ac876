"""Committed files name no machine and no registry, and vendored files match their checksums."""

from __future__ import annotations

import hashlib
import re
import tomllib

import pytest

from tests.architecture.tree import ROOT, texts

# Split so that this file does not match itself.
MACHINE = re.compile(
    r"/(?:root|work|home|opt/whe" r"els|tmp/[a-z]+)/|/(?:Us" r"ers)/[a-z]|C:\\Us" r"ers"
)
REGISTRY = re.compile(
    r"py" r"pi\.org|python" r"hosted\.org|np" r"mjs\.(?:org|com)|proxy\.go" r"lang"
)
LOCKS = (
    "requirements.lock", "requirements-tracing.lock", "requirements-dev.lock",
    "requirements-browser.lock", "requirements-docs.lock",
)  # fmt: skip
VENDORS = ("gateway/console/static/vendor", "gateway/graphql/static/vendor")


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in texts()
        if path.suffix != ".tmp"
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) < 2000 and pattern.search(line)
    ]


def test_no_path_of_a_machine() -> None:
    assert lines_with(MACHINE) == []


def test_no_host_of_a_registry() -> None:
    assert lines_with(REGISTRY) == []


def test_locks_pin_and_hash_every_line() -> None:
    for name in (*LOCKS, *(f"requirements-{name}.lock" for name in ("codegen", "mcp1", "mcp2"))):
        text = (ROOT / name).read_text()
        entries = re.split(r"\n(?=[a-z])", text.strip())
        assert entries, name
        assert [e.split()[0] for e in entries if "==" not in e or "--hash=sha256:" not in e] == []
        assert re.findall(r"https?:|file:|--index|--find-links|^#.*/", text, re.MULTILINE) == []


def pins(lock: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE)
    return dict(found)


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=; ]", text)[0].lower() for text in requirements}


def test_serving_installs_what_it_declares_and_no_tool_of_the_tests() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = declared["project"]["optional-dependencies"]
    serving = names(declared["project"]["dependencies"] + extras["postgres"])
    assert serving - pins("requirements.lock").keys() == set()
    tools = names(extras["dev"] + extras["browser"] + extras["docs"])
    assert tools & pins("requirements.lock").keys() == set()
    assert names(extras["dev"]) - pins("requirements-dev.lock").keys() == set()
    assert names(extras["docs"]) - pins("requirements-docs.lock").keys() == set()
    assert names(extras["tracing"]) - pins("requirements-tracing.lock").keys() == set()


def test_locks_agree_on_what_they_share() -> None:
    pinned = [pins(lock) for lock in LOCKS]
    both = {name: version for lock in pinned for name, version in lock.items()}
    assert [name for lock in pinned for name in lock if lock[name] != both[name]] == []


@pytest.mark.parametrize("name", VENDORS)
def test_vendored_files_are_the_ones_listed(name: str) -> None:
    vendor = ROOT / name
    table = (vendor / "VERSIONS.md").read_text()
    rows = re.findall(r"^\| (\S+) \|.*\(([\w.-]+)\)\) \| ([0-9a-f]{64}) \|$", table, re.MULTILINE)
    assert {name: digest for name, _, digest in rows} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in vendor.iterdir()
        if path.suffix in {".js", ".css"}
    }
    assert [licence for _, licence, _ in rows if not (vendor / licence).is_file()] == []
