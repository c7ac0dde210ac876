"""TLS to PostgreSQL by the settings of the URL, whatever the home directory is."""

from __future__ import annotations

import getpass
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import asyncpg
import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from outbox.database.postgres.server import Server
from outbox.errors import CannotStart
from tests.support.cluster import Cluster, own_server
from tests.support.versions import DEBIAN, versions
from tests.support.waiting import until

NOBODY = 65534
TLS = "tls"
PLAIN = "plain"
CA = "sslrootcert={f}/ca.pem"


class Case(NamedTuple):
    """`home` is what HOME leads to; None is no home at all. `says` is how it connects, or why not.

    `{f}` is the folder of the files.
    """

    query: str
    says: str
    home: str | None = "closed"
    cert_file: str = ""
    """What the system trusts."""


CASES = (
    *(Case("", TLS, home) for home in ("closed", "absent", "file", "empty", None)),
    *(Case("sslmode=require", TLS, home) for home in ("closed", "absent", "file", "empty", None)),
    *(Case(f"sslmode=verify-full&{CA}", TLS, home) for home in ("closed", "absent", "file", None)),
    Case("sslmode=disable", PLAIN),
    Case("sslmode=allow", PLAIN),
    Case("sslmode=prefer", TLS),
    Case(f"sslmode=require&{CA}", TLS),
    Case(f"sslmode=verify-ca&{CA}", TLS),
    Case("sslmode=verify-full", TLS, "home"),
    Case("sslmode=verify-full", "sslrootcert: cannot read {f}/locked/.postgresql", "locked"),
    Case("sslmode=require", "sslrootcert: cannot read {f}/locked/.postgresql", "locked"),
    Case("sslmode=verify-full", "needs the certificate of the server's authority: set sslroot"),
    Case("sslmode=verify-ca", "set sslrootcert to its file, or to system", None),
    Case("sslmode=require&sslrootcert={f}/other.pem", "its certificate proves nothing"),
    Case("sslmode=verify-full&sslrootcert={f}/other.pem", "set sslrootcert in database.url"),
    Case("sslmode=verify-ca&sslrootcert={f}/none.pem", "sslrootcert: cannot read {f}/none.pem: n"),
    Case("sslmode=verify-ca&sslrootcert={f}/secret.pem", "cannot read {f}/secret.pem: permission"),
    Case("sslmode=verify-ca&sslrootcert={f}", "sslrootcert: cannot read {f}: is a directory"),
    Case("sslmode=verify-ca&sslrootcert={f}/junk.pem", "{f}/junk.pem is not a file of PEM"),
    Case("sslrootcert=system", TLS, cert_file="ca.pem"),
    Case("sslrootcert=system&sslmode=verify-full", TLS, None, "ca.pem"),
    Case("sslrootcert=system", "proves nothing", cert_file="other.pem"),
    Case("sslrootcert=system&sslmode=require", "use sslmode=verify-full", cert_file="ca.pem"),
    Case("sslmode=require&sslcert={f}/both.pem", TLS),
    Case("sslmode=require&sslcert={f}/client.crt&sslkey={f}/client.key", TLS),
    Case("sslmode=require&sslcert={f}/client.crt", "{f}/client.crt has no key; set sslkey"),
    Case("sslcert={f}/client.crt&sslkey={f}/none.key", "sslkey: cannot read {f}/none.key: no such"),
    Case("sslcert={f}/client.crt&sslkey={f}/other.key", "does not belong to the certificate"),
    Case("sslcert={f}/client.crt&sslkey={f}/closed.key", "an encrypted key needs sslpassword"),
    Case("sslcert={f}/client.crt&sslkey={f}/closed.key&sslpassword=no", "with this sslpassword"),
    Case("sslcert={f}/client.crt&sslkey={f}/closed.key&sslpassword=abcd", TLS),
    Case(f"sslmode=verify-ca&{CA}&sslcrl={{f}}/none.crl", "sslcrl: cannot read {f}/none.crl"),
    Case(f"sslmode=verify-ca&{CA}&sslcrl={{f}}/junk.pem", "sslcrl: {f}/junk.pem is not a file"),
    Case("sslmode=require&ssl_min_protocol_version=TLSv1.3", TLS),
    Case("ssl_min_protocol_version=TLSv4", "wrong ssl_min_protocol_version; it must be"),
    Case("sslmode=verify", "wrong sslmode; it must be one of disable, allow, prefer, require"),
)  # fmt: skip


@pytest.fixture
def files() -> Iterator[Path]:
    """A folder of certificates and homes that any user can enter."""
    with tempfile.TemporaryDirectory(prefix="carteiro-tls-", dir="/tmp") as home:
        folder = Path(home)
        folder.chmod(0o755)
        ca, other = trustme.CA(), trustme.CA()
        client, stranger = ca.issue_cert("client"), ca.issue_cert("stranger")
        ca.cert_pem.write_to_path(folder / "ca.pem")
        other.cert_pem.write_to_path(folder / "other.pem")
        other.cert_pem.write_to_path(folder / "secret.pem")
        (folder / "junk.pem").write_text("-----BEGIN\n")
        (folder / "file").write_text("no folder")
        client.private_key_and_cert_chain_pem.write_to_path(folder / "both.pem")
        client.cert_chain_pems[0].write_to_path(folder / "client.crt")
        client.private_key_pem.write_to_path(folder / "client.key")
        stranger.private_key_pem.write_to_path(folder / "other.key")
        key = load_pem_private_key(client.private_key_pem.bytes(), None)
        (folder / "closed.key").write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"abcd"))
        )
        for name in ("home", "locked", "closed", "empty"):
            (folder / name / ".postgresql").mkdir(parents=True)
            if name != "empty":
                ca.cert_pem.write_to_path(folder / name / ".postgresql/root.crt")
        for path in folder.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        for name in ("secret.pem", "locked/.postgresql/root.crt", "closed"):
            (folder / name).chmod(0)
        server = ca.issue_cert("127.0.0.1", "localhost")
        server.private_key_pem.write_to_path(folder / "server.key")
        server.cert_chain_pems[0].write_to_path(folder / "server.crt")
        (folder / "server.key").chmod(0o600)
        yield folder
        (folder / "closed").chmod(0o755)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Be a user to whom rights of files apply."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


async def connected(url: str) -> str:
    """Connect as the product does, twice; return how, or why not."""
    try:
        server = Server(url, "", "on")
    except CannotStart as refused:
        return str(refused)
    try:
        for _ in range(2):
            connection = await server.connect()
            found = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
            encrypted = await connection.fetchval(found)
            await connection.close()
    except (OSError, asyncpg.PostgresError, ValueError) as error:
        return str(server.refusal(error))
    return TLS if encrypted else PLAIN


@pytest.mark.proof
async def test_the_settings_of_the_url(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # That of the wheel is built without TLS.
    made_for_systems = [number for number in versions() if (DEBIAN / str(number)).exists()]
    if not made_for_systems:
        pytest.skip("needs a PostgreSQL of the system")
    async with own_server(version=made_for_systems[0]) as cluster:
        for mode in ("allow", "prefer", "disable"):
            assert await connected(f"{cluster.url}?sslmode={mode}") == PLAIN
        assert "takes no TLS" in await connected(f"{cluster.url}?sslmode=require")
        await turn_on(cluster, files)
        wrong = []
        for case in CASES:
            url = f"{cluster.url}?{case.query.format(f=files)}".removesuffix("?")
            with monkeypatch.context() as patch:
                set_home(patch, files, case)
                with unprivileged():
                    said = await connected(url)
            if case.says.format(f=files) not in said or "\n" in said or "abcd" in said:
                wrong.append((case, said))
        assert not wrong


async def turn_on(cluster: Cluster, files: Path) -> None:
    """Turn TLS on."""
    for name in ("server.crt", "server.key"):
        shutil.copy(files / name, cluster.data / name)
        cluster.give(cluster.data / name)
    await cluster.run("alter system set ssl = on")
    await cluster.run("select pg_reload_conf()")
    await until(lambda: takes_tls(cluster.url))


async def takes_tls(url: str) -> bool:
    connection = await asyncpg.connect(url)
    try:
        return bool(await connection.fetchval("show ssl") == "on")
    finally:
        await connection.close()


def set_home(monkeypatch: pytest.MonkeyPatch, files: Path, case: Case) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(files / (case.cert_file or "other.pem")))
    monkeypatch.setenv("SSL_CERT_DIR", str(files / "empty"))
    if case.home is not None:
        monkeypatch.setenv("HOME", str(files / case.home))
        return
    monkeypatch.delenv("HOME")

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)


async def test_on_a_socket_there_is_no_tls_to_ask_for(url: str) -> None:
    for query in ("", "&sslmode=require", "&sslmode=verify-full"):
        assert await connected(f"{url}{query}") == PLAIN


async def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As containers have it; the driver asks for the name of one who names no role."""

    def nameless() -> str:
        raise KeyError("getpwuid(): uid not found: 1234")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.delenv("PGUSER", raising=False)
    said = await connected("postgresql://127.0.0.1:1/crm")
    assert said.startswith("database.url: must name a user: postgresql://user@host:port/name")
    for named in ("postgresql://ana@127.0.0.1:1/crm", "postgresql://127.0.0.1:1/crm?user=ana"):
        assert (await connected(named)).startswith("cannot reach PostgreSQL")
