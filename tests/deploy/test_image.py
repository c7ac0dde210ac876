"""The image, built without a container engine, and run in a chroot as an engine would.

buildah builds the Dockerfile as it is, on a base that debootstrap makes. The chroot has a read-only
file system, namespaces for mounts and processes, and no capability.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.tree import ROOT
from tests.support.process import Serving, clean_environment, free_port
from tests.support.requirements import need

BUILD_SECONDS = 1500
READY_SECONDS = 120
STOP_SECONDS = 20
PACKAGES = "python3,python3-venv,ca-certificates"
INSTALLERS = (
    "/etc/pip.conf", "/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs",
    "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
)  # fmt: skip
"""What pip may need of this machine while it installs; nothing of it stays in the image."""
ENTER = """
set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
mount -o remount,bind,ro "$ROOT"
mount --bind "$DATA" "$ROOT/data"
mount -t tmpfs -o mode=1777 tmpfs "$ROOT/tmp"
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
exec chroot "$ROOT" setpriv --reuid="$USER_ID" --regid="$USER_ID" --clear-groups \\
    --no-new-privs --bounding-set=-all --inh-caps=-all \\
    env -i "$@"
"""


class Image:
    """A built image, its mounted files, and a folder for its volume."""

    def __init__(self, work: Path) -> None:
        for tool in ("root", "buildah", "debootstrap"):
            need(tool)
        self._work = work
        storage = work / "storage.conf"
        storage.write_text(
            f'[storage]\ndriver = "vfs"\ngraphroot = "{work}/store"\nrunroot = "{work}/run"\n'
        )
        self._policy = work / "policy.json"
        self._policy.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
        self._environment = clean_environment() | {
            "CONTAINERS_STORAGE_CONF": str(storage), "BUILDAH_ISOLATION": "chroot",
        }  # fmt: skip
        self.data = work / "data"
        self.root = Path()
        self.settings: dict[str, Any] = {}
        self.port = free_port()

    def build(self) -> None:
        """Make the base, build the image on it, and mount its files."""
        suite = re.search(r"VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text())
        assert suite
        base = self._work / "base"
        self._run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite[1], str(base))
        (self._work / "Base").write_text("FROM scratch\nCOPY base/ /\n")
        self._build("base", self._work / "Base", self._work)
        mounts = [f"--volume={each}:{each}:ro" for each in INSTALLERS if Path(each).exists()]
        more = ["--build-arg=PYTHON=localhost/base", "--network=host", *mounts]
        self._build("carteiro", ROOT / "Dockerfile", ROOT, *more)
        told = json.loads(self._run("buildah", "inspect", "--type=image", "carteiro"))
        self.settings = told["Docker"]["config"]
        policy = f"--signature-policy={self._policy}"
        box = self._run("buildah", "from", "--pull-never", policy, "localhost/carteiro")
        self.root = Path(self._run("buildah", "mount", box))
        self.data.mkdir(mode=0o700)
        os.chown(self.data, self.user, self.user)

    @property
    def user(self) -> int:
        return int(self.settings["User"].partition(":")[0])

    def start(self, words: Sequence[str], **more: Any) -> subprocess.Popen[bytes]:
        """Start a program of the image with its environment, in the folder of the image."""
        told = [*self.settings["Env"], f"CARTEIRO_SERVER__PORT={self.port}"]
        given = self._environment | {
            "ROOT": str(self.root), "DATA": str(self.data), "USER_ID": str(self.user),
        }  # fmt: skip
        inside = ["sh", "-c", f'cd {self.settings["WorkingDir"]} && exec "$@"', "sh", *words]
        return subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh",
             *told, *inside],
            env=given, stdin=subprocess.PIPE, start_new_session=True, **more,
        )  # fmt: skip

    def ended(self, *words: str, stdin: str = "") -> tuple[int, str]:
        """Run a program of the image to its end; return its status and its output."""
        process = self.start(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out, _ = process.communicate(stdin.encode(), timeout=READY_SECONDS)
        return process.returncode, out.decode()

    def _build(self, name: str, file: Path, context: Path, *more: str) -> None:
        self._run(
            "buildah", "bud", "--format=docker", "--pull-never",
            f"--signature-policy={self._policy}", f"--tag={name}", f"--file={file}", *more,
            str(context),
        )  # fmt: skip

    def _run(self, tool: str, *words: str) -> str:
        done = subprocess.run(
            [need(tool), *words], env=self._environment, capture_output=True, text=True,
            timeout=BUILD_SECONDS, cwd=self._work,
        )  # fmt: skip
        assert done.returncode == 0, f"{tool} {words[0]}: {(done.stdout + done.stderr)[-1500:]}"
        return done.stdout.strip()


@pytest.fixture
def image() -> Iterator[Image]:
    # Its files are too many to be kept.
    with tempfile.TemporaryDirectory(prefix="carteiro-image-", ignore_cleanup_errors=True) as home:
        image = Image(Path(home))
        image.build()
        yield image


@pytest.mark.timeout(1800)
def test_the_image_is_built_and_runs_without_rights(image: Image, tmp_path: Path) -> None:
    told = image.settings
    with (tmp_path / "err.txt").open("w") as out:
        process = image.start([*told["Entrypoint"], *told["Cmd"]], stdout=out, stderr=out)
    try:
        _lives(image, Serving(process, image.port, tmp_path))
    finally:
        process.kill()
        process.communicate()


def _lives(image: Image, server: Serving) -> None:
    """Check its health and its rights, write, and stop."""
    server.until("/readyz", 200, READY_SECONDS)
    health = image.settings["Healthcheck"]["Test"]
    assert health[0] == "CMD"
    assert image.ended(*health[1:])[0] == 0
    pid = server.process.pid
    inner = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
    lines = Path(f"/proc/{inner}/status").read_text().splitlines()
    rights = dict(line.split(":\t", 1) for line in lines)
    for name, wanted in (("Uid", str(image.user)), ("CapEff", "0" * 16), ("NoNewPrivs", "1")):
        assert set(rights[name].split()) == {wanted}, name
    for path in ("/opt/carteiro/x", "/etc/x", "/x"):
        assert image.ended("touch", path)[0] != 0, path
    # An account and a key by commands, and a contact by the API.
    add = ("user", "add", "ana@example.com", "--name", "Ana", "--password-stdin")
    status, said = image.ended("carteiro", *add, stdin="a long pass phrase\n")
    assert status == 0, said
    status, key = image.ended("carteiro", "key", "add", "ana@example.com", "--name", "test")
    assert status == 0, key
    given = {"X-API-Key": key.strip()}
    made = server.ask("/api/contacts", method="POST", body={"name": "Bia"}, headers=given)
    assert made[0] == 201, made
    assert [each.name for each in image.data.iterdir() if each.stat().st_mode & 0o077] == []
    os.kill(inner, signal.SIGTERM)
    assert server.process.wait(STOP_SECONDS) == 0
