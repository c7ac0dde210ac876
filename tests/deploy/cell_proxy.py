"""The HAProxy of docs/deploy for cells, as a real process on loopback."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import trustme

from gateway.cli.cells.haproxy import Runtime
from tests.deploy.proxies import DEPLOY, replaced, until_open
from tests.support.process import free_port
from tests.support.requirements import need

SHARED = "crm.example.com"
"""The hostname that all cells share."""


class CellProxy:
    """HAProxy in front of cells, `ports` of one node each, with its files in `folder`."""

    def __init__(self, folder: Path, ports: Mapping[str, int]) -> None:
        self.folder = folder
        self.https = free_port()
        self.url = f"https://{SHARED}:{self.https}"
        self._process: subprocess.Popen[bytes] | None = None
        authority = trustme.CA()
        pem = authority.issue_cert(SHARED).private_key_and_cert_chain_pem
        pem.write_to_path(folder / "carteiro.pem")
        for name in ("moved.map", "hosts.map"):
            (folder / name).touch()
        (folder / "haproxy.cfg").write_text(_text(folder, self.https, ports))

    @property
    def socket(self) -> Path:
        return self.folder / "carteiro.sock"

    @property
    def runtime(self) -> Runtime:
        return Runtime(self.socket)

    def start(self) -> None:
        """Run it, with the maps that are in its folder now."""
        words = [need("haproxy"), "-db", "-f", str(self.folder / "haproxy.cfg")]
        log = self.folder / "log"
        with log.open("ab") as out:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        self._process = process
        until_open(self.https, process, log)

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None


def _text(folder: Path, https: int, ports: Mapping[str, int]) -> str:
    """Return the configuration of docs/deploy for these cells."""
    text = (DEPLOY / "haproxy-cells.cfg").read_text()
    head, _, backend = text.rpartition("backend cell-two")
    names = list(ports)
    text = replaced(
        head + "".join(f"backend cell-{name}{backend}\n" for name in names[1:]),
        ("bind :80\n", f"bind 127.0.0.1:{free_port()}\n"),
        ("bind :443 ", f"bind 127.0.0.1:{https} "),
        ("/etc/ssl/carteiro/", f"{folder}/"),
        ("/run/haproxy/", f"{folder}/"),
        ("/etc/haproxy/moved.map", f"{folder}/moved.map"),
        ("/etc/haproxy/hosts.map", f"{folder}/hosts.map"),
        ("-m str one two }", f"-m str {' '.join(names)} }}"),
    )
    addresses = iter([f"127.0.0.1:{port}" for port in ports.values()])
    return re.sub(r"127\.0\.0\.1:808[01]", lambda _: next(addresses), text)
