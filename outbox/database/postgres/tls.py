"""TLS to PostgreSQL: the context of a URL's settings, as libpq reads them.

The driver's own context looks into the home directory without need, and fails when there is none
that this user may read. Here the files of `~/.postgresql` count only when they can be seen.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

SYSTEM = "system"
_FILES = {
    "sslrootcert": "root.crt",
    "sslcrl": "root.crl",
    "sslcert": "postgresql.crt",
    "sslkey": "postgresql.key",
}
_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}

Way = ssl.SSLContext | Literal[False]
"""What the driver takes as `ssl`."""


class UnusableSettings(OSError):
    """A setting of the URL cannot be used; the text names it and the fix."""


class Tls:
    """How connections of one URL are encrypted."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        """`settings` are the parameters of the URL that are known to be right."""
        self._settings = settings
        self.at_once = settings.get("sslnegotiation") == "direct"
        """Whether TLS begins without a question to the server."""

    def ways(self, *, by_socket: bool) -> list[Way]:
        """Return the ways to try, the best first. Raise UnusableSettings."""
        if by_socket:
            return [False]
        mode = self._mode()
        if mode == "disable":
            return [False]
        context = self._context(mode)
        ways: dict[str, list[Way]] = {"allow": [False, context], "prefer": [context, False]}
        return ways.get(mode, [context])

    def _mode(self) -> str:
        system = self._settings.get("sslrootcert") == SYSTEM
        mode = self._settings.get("sslmode") or ("verify-full" if system else "prefer")
        if system and mode != "verify-full":
            raise UnusableSettings(
                f"sslrootcert=system trusts many authorities, so sslmode={mode} proves nothing: "
                "use sslmode=verify-full"
            )
        if self.at_once and mode in ("disable", "allow", "prefer"):
            raise UnusableSettings(
                "sslnegotiation=direct is only for sslmode=require, verify-ca and verify-full"
            )
        return mode

    def _context(self, mode: str) -> ssl.SSLContext:
        files = {name: self._file(name) for name in _FILES}
        if mode in ("allow", "prefer"):
            # Nothing is verified.
            files["sslrootcert"] = files["sslcrl"] = ""
        if mode.startswith("verify") and not files["sslrootcert"]:
            raise UnusableSettings(
                f"sslmode={mode} needs the certificate of the server's authority: set sslrootcert "
                "to its file, or to system"
            )
        # A certificate that was replaced is another file, and so another context.
        return _context(
            mode,
            _Files(
                root=files["sslrootcert"],
                crl=files["sslcrl"],
                cert=files["sslcert"],
                key=files["sslkey"],
                states=tuple(map(_state, files.values())),
            ),
            self._settings.get("sslpassword", ""),
            self._version("ssl_min_protocol_version") or ssl.TLSVersion.TLSv1_2,
            self._version("ssl_max_protocol_version"),
        )

    def _file(self, name: str) -> str:
        given = self._settings.get(name)
        if not given:
            return _at_home(name)
        if name == "sslrootcert" and given == SYSTEM:
            return given
        _must_be_readable(name, given)
        return given

    def _version(self, name: str) -> ssl.TLSVersion | None:
        return _VERSIONS.get(self._settings.get(name, ""))


class _Files(NamedTuple):
    """The paths of the files of TLS, empty without one, and what tells a replaced file."""

    root: str
    crl: str
    cert: str
    key: str
    states: object


@lru_cache(maxsize=16)
def _context(
    mode: str,
    files: _Files,
    password: str,
    lowest: ssl.TLSVersion,
    highest: ssl.TLSVersion | None,
) -> ssl.SSLContext:
    root, crl = files.root, files.crl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = mode == "verify-full"
    context.verify_mode = ssl.CERT_REQUIRED if root else ssl.CERT_NONE
    context.minimum_version = lowest
    if highest is not None:
        context.maximum_version = highest
    if root == SYSTEM:
        context.load_default_certs()
        if not context.cert_store_stats()["x509_ca"] and not _has_folder():
            raise UnusableSettings(
                "sslrootcert=system: this system has no certificates of authorities; install "
                "ca-certificates, or set sslrootcert to a file"
            )
    elif root:
        _load(context, "sslrootcert", root)
    if crl and root:
        _load(context, "sslcrl", crl)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
    if files.cert:
        _load_pair(context, files.cert, files.key, password)
    if ssl.HAS_ALPN:
        # Servers require it when TLS begins without a question (sslnegotiation=direct).
        context.set_alpn_protocols(["postgresql"])
    return context


def _load(context: ssl.SSLContext, name: str, path: str) -> None:
    try:
        context.load_verify_locations(cafile=path)
    except ssl.SSLError:
        raise UnusableSettings(f"{name}: {path} is not a file of PEM certificates") from None


def _load_pair(context: ssl.SSLContext, cert: str, key: str, password: str) -> None:
    try:
        context.load_cert_chain(cert, key or None, password=lambda: password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            why = f"the key {key} does not belong to the certificate {cert}; correct sslkey"
        elif not key:
            why = f"{cert} has no key; set sslkey to its file"
        elif password:
            why = f"{cert} and {key} cannot be read with this sslpassword"
        else:
            why = f"{cert} and {key} must be PEM; an encrypted key needs sslpassword"
        raise UnusableSettings(f"sslcert: {why}") from None
    except ValueError:
        # The library's limit of a password.
        raise UnusableSettings("sslpassword is too long") from None


def _must_be_readable(name: str, path: str) -> None:
    try:
        with Path(path).open("rb"):
            return
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise UnusableSettings(f"{name}: cannot read {path}: {reason}") from None


def _at_home(setting: str) -> str:
    """Return the path of a file in `~/.postgresql`, empty when there is none to be seen."""
    try:
        path = Path.home() / ".postgresql" / _FILES[setting]
        path.stat()
    except (RuntimeError, KeyError, OSError, ValueError):
        # There is no home, or not for this user.
        return ""
    # What is there and cannot be read may be what the connection should be verified by.
    _must_be_readable(setting, str(path))
    return str(path)


def _state(path: str) -> tuple[str, int, int] | None:
    if path == SYSTEM:
        path = ssl.get_default_verify_paths().cafile or ""
    try:
        state = Path(path).stat()
    except (OSError, ValueError):
        return None
    return (path, state.st_mtime_ns, state.st_size)


def _has_folder() -> bool:
    """Return whether the system has a folder of certificates, of which OpenSSL reads on demand."""
    folder = ssl.get_default_verify_paths().capath
    return folder is not None and any(Path(folder).iterdir())
