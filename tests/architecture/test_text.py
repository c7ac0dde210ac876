"""What is committed names no machine and no registry, and vendored files are what they say."""

from __future__ import annotations

import hashlib
import re

from tests.architecture.tree import ROOT, texts

# Split so that this file does not find itself.
MACHINE = re.compile(
    r"/(?:root|work|home|opt/whe" r"els|tmp/[a-z]+)/|/(?:Us" r"ers)/[a-z]|C:\\Us" r"ers"
)
REGISTRY = re.compile(
    r"py" r"pi\.org|python" r"hosted\.org|np" r"mjs\.(?:org|com)|proxy\.go" r"lang"
)
VENDOR = ROOT / "gateway/console/static/vendor"


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
    for name in ("requirements.lock", "requirements-browser.lock"):
        text = (ROOT / name).read_text()
        entries = re.split(r"\n(?=[a-z])", text.strip())
        assert entries, name
        assert [e.split()[0] for e in entries if "==" not in e or "--hash=sha256:" not in e] == []
        assert re.findall(r"https?:|file:|--index|--find-links|^#.*/", text, re.MULTILINE) == []


def test_vendored_files_are_the_ones_listed() -> None:
    table = (VENDOR / "VERSIONS.md").read_text()
    rows = re.findall(r"^\| (\S+) \|.*\(([\w.]+)\)\) \| ([0-9a-f]{64}) \|$", table, re.MULTILINE)
    assert {name: digest for name, _, digest in rows} == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.suffix in {".js", ".css"}
    }
    assert [licence for _, licence, _ in rows if not (VENDOR / licence).is_file()] == []
