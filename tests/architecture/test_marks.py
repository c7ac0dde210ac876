"""Test marks match what the tests need."""

from __future__ import annotations

import re

from tests.architecture.tree import ROOT

DRIVES = re.compile(r"^\s*(?:from|import) playwright|\bchromium: Browser\b", re.MULTILINE)


def test_what_drives_a_browser_is_in_the_folder_whose_tests_are_marked_so() -> None:
    driving = {path for path in ROOT.glob("tests/**/test_*.py") if DRIVES.search(path.read_text())}
    assert driving == set(ROOT.glob("tests/browser/test_*.py"))
