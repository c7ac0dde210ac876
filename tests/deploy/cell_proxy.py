"""The HAProxy of docs/deploy for cells, as a real process on loopback."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from gateway.cli.cells.haproxy import Runtime
from tests.deploy.proxies import DEPLOY, HOST, Proxy, replaced
from tests.support.requirements import need

SHARED = HOST
"""The hostname that all cells share."""


class CellProxy(Proxy):
    """HAProxy in front of cells, `ports` of one node each."""

    def __init__(self, folder: Path, ports: Mapping[str, int]) -> None:
        super().__init__(folder)
        self.url = f"https://{SHARED}:{self.https}"
        self.socket = folder / "carteiro.sock"
        self.runtime = Runtime(self.socket)
        self.words = [need("haproxy"), "-db", "-f", folder / "haproxy.cfg"]
        for name in ("moved.map", "hosts.map"):
            (folder / name).touch()
        head, _, backend = (DEPLOY / "haproxy-cells.cfg").read_text().rpartition("backend cell-two")
        names = list(ports)
        text = replaced(
            head + "".join(f"backend cell-{name}{backend}\n" for name in names[1:]),
            ("bind :80\n", f"bind 127.0.0.1:{self.http}\n"),
            ("bind :443 ", f"bind 127.0.0.1:{self.https} "),
            ("/etc/ssl/carteiro/", f"{folder}/"),
            ("/run/haproxy/", f"{folder}/"),
            ("/etc/haproxy/moved.map", f"{folder}/moved.map"),
            ("/etc/haproxy/hosts.map", f"{folder}/hosts.map"),
            ("-m str one two }", f"-m str {' '.join(names)} }}"),
        )
        addresses = iter([f"127.0.0.1:{port}" for port in ports.values()])
        text = re.sub(r"127\.0\.0\.1:808[01]", lambda _: next(addresses), text)
        (folder / "haproxy.cfg").write_text(text)
