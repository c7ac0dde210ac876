"""The proxies of docs/deploy as real servers on loopback, with ports and certificates of a test."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import trustme

from tests.architecture.tree import ROOT
from tests.support.process import free_port
from tests.support.requirements import need
from tests.support.waiting import HANG_SECONDS

DEPLOY = ROOT / "docs" / "deploy"
HOST = "crm.example.com"
FILES = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile"}


class Proxy:
    """A proxy with its files in `folder`: its ports, and who signed its certificate."""

    words: Sequence[str | Path]
    """Its command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.http, self.https = free_port(), free_port()
        self.authority = folder / "authority.pem"
        self.environment: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.authority)
        issued = authority.issue_cert(HOST)
        issued.private_key_and_cert_chain_pem.write_to_path(folder / "carteiro.pem")
        issued.private_key_pem.write_to_path(folder / "privkey.pem")
        for blob in issued.cert_chain_pems:
            blob.write_to_path(folder / "fullchain.pem", append=True)

    def start(self) -> None:
        """Run it with the files that are in its folder now, and wait until it listens."""
        log = self.folder / "log"
        with log.open("ab") as out:
            self._process = process = subprocess.Popen(
                self.words, cwd=self.folder, env=os.environ | self.environment,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + HANG_SECONDS
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            try:
                socket.create_connection(("127.0.0.1", self.https), 1).close()
            except ConnectionRefusedError:
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """End it and its workers with SIGKILL."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
            self._process = None


def replaced(text: str, *changes: tuple[str, str]) -> str:
    """`text` with each change; one that changes nothing is an error."""
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text


def _nginx(proxy: Proxy, text: str, nodes: Sequence[int]) -> None:
    folder, line = proxy.folder, "server 127.0.0.1:8080 max_fails=1 fail_timeout=2s;"
    text = replaced(
        text,
        (line, "\n".join(line.replace("8080", str(port)) for port in nodes)),
        ("listen 80;", f"listen 127.0.0.1:{proxy.http};"),
        ("listen 443 ", f"listen 127.0.0.1:{proxy.https} "),
        ("/etc/ssl/carteiro/", f"{folder}/"),
    )
    (folder / "site.conf").write_text(text)
    temporary = "\n".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "main.conf").write_text(
        f"{user}\ndaemon off;\npid {folder}/pid;\nevents {{}}\n"
        f"http {{ access_log off; {temporary}\ninclude {folder}/site.conf; }}\n"
    )
    proxy.words = [need("nginx"), "-p", folder, "-c", folder / "main.conf", "-e", "stderr"]


def _haproxy(proxy: Proxy, text: str, nodes: Sequence[int]) -> None:
    servers = "".join(f"    server node-{n} 127.0.0.1:{port}\n" for n, port in enumerate(nodes))
    text = replaced(
        text,
        ("    server node-1 127.0.0.1:8080\n", servers),
        ("bind :80\n", f"bind 127.0.0.1:{proxy.http}\n"),
        ("bind :443 ", f"bind 127.0.0.1:{proxy.https} "),
        ("/etc/ssl/carteiro/carteiro.pem", str(proxy.folder / "carteiro.pem")),
    )
    (proxy.folder / "haproxy.cfg").write_text(text)
    proxy.words = [need("haproxy"), "-db", "-f", proxy.folder / "haproxy.cfg"]


def _caddy(proxy: Proxy, text: str, nodes: Sequence[int]) -> None:
    folder = proxy.folder
    certificate = f"\ttls {folder}/fullchain.pem {folder}/privkey.pem\n"
    text = replaced(text, ("\trespond /metrics", f"{certificate}\trespond /metrics"))
    options = (
        f"{{\n\tadmin off\n\thttp_port {proxy.http}\n\thttps_port {proxy.https}\n"
        "\tdefault_bind 127.0.0.1\n}\n"
    )
    (folder / "Caddyfile").write_text(options + text)
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    addresses = " ".join(f"127.0.0.1:{port}" for port in nodes)
    proxy.environment = home | {"CARTEIRO_HOST": HOST, "CARTEIRO_NODES": addresses}
    file = folder / "Caddyfile"
    proxy.words = [need("caddy"), "run", "--config", file, "--adapter", "caddyfile"]


PROXIES: dict[str, Callable[[Proxy, str, Sequence[int]], None]] = {
    "nginx": _nginx, "haproxy": _haproxy, "caddy": _caddy,
}  # fmt: skip


@contextmanager
def running(
    name: str, folder: Path, nodes: Sequence[int], without: Sequence[str] = ()
) -> Iterator[Proxy]:
    """Run a proxy before the nodes with these ports; `without` are lines that it lacks."""
    folder.mkdir()
    proxy = Proxy(folder)
    text = (DEPLOY / FILES[name]).read_text()
    PROXIES[name](proxy, replaced(text, *((line + "\n", "") for line in without)), nodes)
    try:
        proxy.start()
        yield proxy
    finally:
        proxy.kill()


def lines_that_replace(name: str) -> list[str]:
    """The lines of a configuration that replace what a client says about itself."""
    found = re.findall(r"^ .*Forwarded.*$", (DEPLOY / FILES[name]).read_text(), re.M)
    return [line for line in found if not line.strip().startswith("#")]
