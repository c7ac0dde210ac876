"""The proxies of docs/deploy as real servers on loopback, with ports and certificates of a test."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme

from tests.architecture.tree import ROOT
from tests.support.process import free_port
from tests.support.requirements import need

DEPLOY = ROOT / "docs" / "deploy"
HOST = "crm.example.com"
FILES = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg", "caddy": "Caddyfile"}
START_SECONDS = 20.0


@dataclass(frozen=True)
class Proxy:
    """A running proxy: its ports, and who signed its certificate."""

    http: int
    https: int
    authority: Path


Prepared = tuple[list[str], dict[str, str]]
"""A command and its environment."""


def replaced(text: str, *changes: tuple[str, str]) -> str:
    """`text` with each change; one that changes nothing is an error."""
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text


def _nginx(folder: Path, proxy: Proxy, nodes: Sequence[int], without: Sequence[str]) -> Prepared:
    line = "server 127.0.0.1:8080 max_fails=1 fail_timeout=2s;"
    text = replaced(
        _text("nginx", without),
        (line, "\n".join(line.replace("8080", str(port)) for port in nodes)),
        ("listen 80;", f"listen 127.0.0.1:{proxy.http};"),
        ("listen 443 ", f"listen 127.0.0.1:{proxy.https} "),
        ("/etc/ssl/carteiro/", f"{folder}/"),
    )
    (folder / "site.conf").write_text(text)
    for name in ("body", "proxy", "fastcgi", "uwsgi", "scgi"):
        (folder / name).mkdir()
    temporary = "\n".join(
        f"{name}_temp_path {folder}/{name.removeprefix('client_')};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "main.conf").write_text(
        f"{user}\ndaemon off;\npid {folder}/pid;\nevents {{}}\n"
        f"http {{ access_log off; {temporary}\ninclude {folder}/site.conf; }}\n"
    )
    words = [need("nginx"), "-p", str(folder), "-c", str(folder / "main.conf"), "-e", "stderr"]
    return words, {}


def _haproxy(folder: Path, proxy: Proxy, nodes: Sequence[int], without: Sequence[str]) -> Prepared:
    servers = "".join(f"    server node-{n} 127.0.0.1:{port}\n" for n, port in enumerate(nodes))
    text = replaced(
        _text("haproxy", without),
        ("    server node-1 127.0.0.1:8080\n", servers),
        ("bind :80\n", f"bind 127.0.0.1:{proxy.http}\n"),
        ("bind :443 ", f"bind 127.0.0.1:{proxy.https} "),
        ("/etc/ssl/carteiro/carteiro.pem", str(folder / "carteiro.pem")),
    )
    (folder / "haproxy.cfg").write_text(text)
    return [need("haproxy"), "-db", "-f", str(folder / "haproxy.cfg")], {}


def _caddy(folder: Path, proxy: Proxy, nodes: Sequence[int], without: Sequence[str]) -> Prepared:
    certificate = f"\ttls {folder}/fullchain.pem {folder}/privkey.pem\n"
    text = replaced(
        _text("caddy", without), ("\trespond /metrics", f"{certificate}\trespond /metrics")
    )
    options = (
        f"{{\n\tadmin off\n\thttp_port {proxy.http}\n\thttps_port {proxy.https}\n"
        "\tdefault_bind 127.0.0.1\n}\n"
    )
    (folder / "Caddyfile").write_text(options + text)
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    settings = {
        "CARTEIRO_HOST": HOST,
        "CARTEIRO_NODES": " ".join(f"127.0.0.1:{port}" for port in nodes),
    }
    words = [need("caddy"), "run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"]
    return words, home | settings


PROXIES: dict[str, Callable[[Path, Proxy, Sequence[int], Sequence[str]], Prepared]] = {
    "nginx": _nginx,
    "haproxy": _haproxy,
    "caddy": _caddy,
}


@contextmanager
def running(
    name: str, folder: Path, nodes: Sequence[int], without: Sequence[str] = ()
) -> Iterator[Proxy]:
    """Run a proxy before the nodes with these ports; `without` are lines that it lacks."""
    folder.mkdir()
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    issued = authority.issue_cert(HOST)
    issued.private_key_and_cert_chain_pem.write_to_path(folder / "carteiro.pem")
    issued.private_key_pem.write_to_path(folder / "privkey.pem")
    for blob in issued.cert_chain_pems:
        blob.write_to_path(folder / "fullchain.pem", append=True)
    proxy = Proxy(free_port(), free_port(), folder / "authority.pem")
    words, environment = PROXIES[name](folder, proxy, nodes, without)
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            words, cwd=folder, env=os.environ | environment, stdin=subprocess.DEVNULL,
            stdout=out, stderr=out, start_new_session=True,
        )  # fmt: skip
    try:
        until_open(proxy.https, process, log)
        yield proxy
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a proxy listens."""
    end = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return


def lines_that_replace(name: str) -> list[str]:
    """The lines of a configuration that replace what a client says about itself."""
    found = re.findall(r"^ .*Forwarded.*$", _text(name, ()), re.M)
    return [line for line in found if not line.strip().startswith("#")]


def _text(name: str, without: Sequence[str]) -> str:
    text = (DEPLOY / FILES[name]).read_text()
    return replaced(text, *((line + "\n", "") for line in without))
