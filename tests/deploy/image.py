"""Build the image without a container engine, and run it in a chroot as an engine would.

buildah builds the Dockerfile as it is, on a base that debootstrap makes. The chroot has a read-only
file system, namespaces for mounts and processes, and no capability.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.error import URLError

from tests.architecture.tree import ROOT
from tests.support.process import clean_environment, free_port
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
        told = json.loads(self._buildah("inspect", "--type=image", "carteiro"))
        self.settings = told["Docker"]["config"]
        box = self._buildah(
            "from", "--pull-never", f"--signature-policy={self._policy}", "localhost/carteiro"
        )
        self.root = Path(self._buildah("mount", box))
        self.data.mkdir(mode=0o700)
        os.chown(self.data, self.user, self.user)

    @property
    def user(self) -> int:
        return int(self.settings["User"].partition(":")[0])

    def added_mb(self) -> int:
        """What the image adds to its base."""
        files = (self.root / "opt" / "carteiro").rglob("*")
        return sum(each.lstat().st_size for each in files) // 1_000_000

    def start(self, words: Sequence[str], **more: Any) -> subprocess.Popen[str]:
        """Start a program of the image with its environment, in the folder of the image."""
        told = [*self.settings["Env"], f"CARTEIRO_SERVER__PORT={self.port}"]
        given = self._environment | {
            "ROOT": str(self.root), "DATA": str(self.data), "USER_ID": str(self.user),
        }  # fmt: skip
        inside = ["sh", "-c", f'cd {self.settings["WorkingDir"]} && exec "$@"', "sh", *words]
        return subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh",
             *told, *inside],
            env=given, text=True, stdin=subprocess.PIPE, start_new_session=True, **more,
        )  # fmt: skip

    def ended(self, *words: str, stdin: str = "") -> tuple[int, str]:
        """Run a program of the image to its end; return its status and its output."""
        process = self.start(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out, _ = process.communicate(stdin, timeout=READY_SECONDS)
        return process.returncode, out

    def _build(self, name: str, file: Path, context: Path, *more: str) -> None:
        self._buildah(
            "bud", "--format=docker", "--pull-never", f"--signature-policy={self._policy}",
            f"--tag={name}", f"--file={file}", *more, str(context),
        )  # fmt: skip

    def _buildah(self, *words: str) -> str:
        return self._run("buildah", *words)

    def _run(self, tool: str, *words: str) -> str:
        done = subprocess.run(
            [need(tool), *words], env=self._environment, capture_output=True, text=True,
            timeout=BUILD_SECONDS, cwd=self._work,
        )  # fmt: skip
        assert done.returncode == 0, f"{tool} {words[0]}: {(done.stdout + done.stderr)[-1500:]}"
        return done.stdout.strip()


def run_image() -> Mapping[str, object]:
    """Build and run the image; return figures, findings and the verdict."""
    work = Path(tempfile.mkdtemp(prefix="carteiro-image-"))
    try:
        begun = time.monotonic()
        image = Image(work)
        image.build()
        findings, figures = _lived(image)
        figures["build_seconds"] = round(time.monotonic() - begun)
        return figures | {"findings": findings, "pass": not findings}
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _lived(image: Image) -> tuple[list[str], dict[str, object]]:
    """Start, check its health and its rights, write, and stop."""
    findings = []
    told = image.settings
    out = (image.data.parent / "out").open("w")
    process = image.start([*told["Entrypoint"], *told["Cmd"]], stdout=out, stderr=out)
    health = told["Healthcheck"]["Test"]
    assert health[0] == "CMD"
    end = time.monotonic() + READY_SECONDS
    while (status := image.ended(*health[1:])[0]) and time.monotonic() < end:
        time.sleep(0.5)
    if status:
        findings.append(f"never healthy: {(image.data.parent / 'out').read_text()[-1000:]}")
    inner = _first_child(process.pid)
    rights = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{inner}/status").read_text().splitlines()
    )
    for name, wanted in (("Uid", str(image.user)), ("CapEff", "0" * 16), ("NoNewPrivs", "1")):
        if set(rights[name].split()) != {wanted}:
            findings.append(f"{name} is {rights[name]}")
    findings += [
        f"{path} can be written"
        for path in ("/opt/carteiro/x", "/etc/x", "/x")
        if image.ended("touch", path)[0] == 0
    ]
    findings += _wrote(image)
    open_to_others = [each.name for each in image.data.iterdir() if each.stat().st_mode & 0o077]
    if open_to_others:
        findings.append(f"readable by others: {open_to_others}")
    figures: dict[str, object] = {
        "added_to_the_base_mb": image.added_mb(),
        "resident_kb": int(rights["VmRSS"].split()[0]),
    }
    os.kill(inner, signal.SIGTERM)
    stopping = time.monotonic()
    if process.wait(STOP_SECONDS) != 0:
        findings.append(f"SIGTERM ends it with {process.returncode}")
    figures["stop_seconds"] = round(time.monotonic() - stopping, 1)
    return findings, figures


def _wrote(image: Image) -> list[str]:
    """Make an account and a key by commands, and a contact by the API."""
    add = ("user", "add", "ana@example.com", "--name", "Ana", "--password-stdin")
    status, said = image.ended("carteiro", *add, stdin="a long pass phrase\n")
    if status:
        return [f"user add: {said}"]
    status, key = image.ended("carteiro", "key", "add", "ana@example.com", "--name", "test")
    if status:
        return [f"key add: {key}"]
    request = urllib.request.Request(
        f"http://127.0.0.1:{image.port}/api/contacts", b'{"name": "Bia"}',
        {"X-API-Key": key.strip(), "Content-Type": "application/json"},
    )  # fmt: skip
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return [] if answer.status == 201 else [f"a contact: {answer.status}"]
    except URLError as error:
        return [f"a contact: {error}"]


def _first_child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
