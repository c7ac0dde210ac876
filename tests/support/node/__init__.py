"""Run node in tests, with the packages of the lock file in this folder.

`make` installs them (`npm ci`); without node or without them a test skips and names them.
"""

import subprocess
from pathlib import Path

import pytest

from tests.support.requirements import need

OCTOKIT = "@octokit/webhooks-methods"
FOLDER = Path(__file__).parent


def run_node(script: str, *packages: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run an ES module given as text."""
    node = need("node")
    for package in packages:
        if not (FOLDER / "node_modules" / package).is_dir():
            pytest.skip(f"needs npm package {package}: make installs it into {FOLDER.name}/")
    return subprocess.run(
        [node, "--input-type=module", "--eval", script],
        input=stdin,
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
