"""`make release` writes the same bytes from each checkout of a commit."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from gateway.server.program import program_version
from tests.architecture.tree import ROOT
from tests.support.requirements import need

RUNBOOK = "https://example.com/runbook"


def git(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [need("git"), *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def release(clone: Path, out: Path) -> None:
    """Make a release of a fresh clone."""
    git("clone", "--quiet", "--no-hardlinks", str(ROOT), str(clone), folder=ROOT)
    done = subprocess.run(
        [clone / ".ci" / "release", out, RUNBOOK], capture_output=True, text=True,
        env={"RELEASE_PYTHON": sys.executable, "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_two_releases_of_a_commit_are_identical(tmp_path: Path) -> None:
    for turn in ("one", "another-folder"):
        release(tmp_path / turn / "tree", tmp_path / turn / "dist")
    first = tmp_path / "one" / "dist"
    digests, again = (
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        for folder in (first, tmp_path / "another-folder" / "dist")
    )
    assert digests == again
    name = f"carteiro-{program_version()}"
    assert set(digests) == {
        "SHA256SUMS", f"{name}.tar.gz", f"{name}-py3-none-any.whl", f"{name}-image.tar.gz",
        f"{name}.cdx.json",
    }  # fmt: skip
    lines = (first / "SHA256SUMS").read_text().splitlines()
    assert {line.split()[1]: line.split()[0] for line in lines} == {
        file: digest for file, digest in digests.items() if file != "SHA256SUMS"
    }
    commit = git("rev-parse", "HEAD", folder=ROOT)
    with zipfile.ZipFile(first / f"{name}-py3-none-any.whl") as wheel:
        assert wheel.read("gateway/revision.txt").decode().strip() == commit
    with tarfile.open(first / f"{name}-image.tar.gz") as image:
        alerts = image.extractfile(f"{name}-image/dashboards/alerts.yml")
        assert alerts is not None
        links = [line for line in alerts.read().decode().splitlines() if "runbook_url" in line]
        assert links
        assert all(f"runbook_url: {RUNBOOK}#" in line for line in links)
        assert f"{name}-image/docs/runbook.md" in image.getnames()
    bom = json.loads((first / f"{name}.cdx.json").read_text())
    assert {"aiohttp", "asyncpg"} <= {component["name"] for component in bom["components"]}


def test_a_release_is_made_of_a_commit(tmp_path: Path) -> None:
    clone = tmp_path / "tree"
    git("clone", "--quiet", str(ROOT), str(clone), folder=ROOT)
    (clone / "README.md").write_text("changed")
    done = subprocess.run(
        [clone / ".ci" / "release", tmp_path / "dist"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "changes that are not committed" in done.stderr
    assert not (tmp_path / "dist").exists()
