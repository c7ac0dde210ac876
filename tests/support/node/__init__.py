"""Run node in tests, with the packages of the lock file in this folder.

`make` installs them (`npm ci`); without node or without them a test skips and names them.
"""

import subprocess
from pathlib import Path

import pytest

from tests.support.requirements import need

OCTOKIT = "@octokit/webhooks-methods"
FOLDER = Path(__file__).parent


def package(name: str) -> Path:
    """Return the folder of an npm package, or skip and name it."""
    folder = FOLDER / "node_modules" / name
    if not folder.is_dir():
        pytest.skip(f"needs npm package {name}: make installs it into {FOLDER.name}/")
    return folder


def run_node(script: str, *packages: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run an ES module given as text."""
    node = need("node")
    for name in packages:
        package(name)
    return subprocess.run(
        [node, "--input-type=module", "--eval", script],
        input=stdin,
        cwd=FOLDER,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
