"""Parses the messages of MCP (JSON-RPC 2.0) and agrees on the revision of the protocol.

In revision 2026-07-28 each request describes itself in `_meta` and mirrors its method in headers.
Earlier ones begin with `initialize`; this server answers it and keeps no session.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from multidict import MultiMapping

from gateway.records.values.strictjson import InvalidJson, decode

MODERN = "2026-07-28"
EARLIER = ("2025-11-25", "2025-06-18")
"""Revisions of clients that begin with `initialize`, the newest first."""
REVISIONS = (MODERN, *EARLIER)
META = "io.modelcontextprotocol/"
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INVALID_PARAMS, INTERNAL_ERROR = -32602, -32603
HEADER_MISMATCH, UNSUPPORTED_REVISION = -32020, -32022
STATUS: Mapping[int, int] = {
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_REVISION: 400,
    METHOD_NOT_FOUND: 404,
}
"""The HTTP status of an error in the newest revision; the others have 200."""
NAMED = "tools/call"
"""The method whose `params.name` is mirrored in the header Mcp-Name."""
MOST_NAME = 100
_ENCODED = re.compile(r"=\?base64\?([A-Za-z0-9+/]*={0,2})\?=")

Id = str | int


class ProtocolError(Exception):
    """The refusal of a message; `status` is that of its response."""

    def __init__(
        self, code: int, message: str, data: Any = None, *, of: Id | None = None, status: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data
        self.of = of
        self.status = status or STATUS.get(code, 200)


@dataclass(frozen=True, slots=True)
class Message:
    """One request, or a notification, which has no id."""

    method: str
    params: Mapping[str, Any] = field(default_factory=dict)
    id: Id | None = None

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the request says of itself."""
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    def client(self, otherwise: str) -> str:
        """Return name and version of the client for people, from `_meta` or `initialize`."""
        info = self.meta.get(f"{META}clientInfo") or self.params.get("clientInfo")
        named = otherwise.partition(" ")[0]
        if isinstance(info, dict):
            parts = (info.get("title") or info.get("name"), info.get("version"))
            named = " ".join(part for part in parts if isinstance(part, str)) or named
        seen = "".join(sign if sign.isprintable() else " " for sign in named[: MOST_NAME * 2])
        return seen.strip()[:MOST_NAME] or "unnamed"


def parse(body: bytes) -> Message:
    """Return the message of a body. Raises ProtocolError."""
    try:
        sent = decode(body)
    except InvalidJson as error:
        raise ProtocolError(PARSE_ERROR, str(error)) from None
    if isinstance(sent, list):
        text = "Send one message in each request; batches ended with revision 2025-03-26."
        raise ProtocolError(INVALID_REQUEST, text)
    if not isinstance(sent, dict):
        raise ProtocolError(INVALID_REQUEST, "Send a JSON-RPC 2.0 request: an object.")
    given = sent.get("id")
    known = given if isinstance(given, str | int) and not isinstance(given, bool) else None
    if sent.get("jsonrpc") != "2.0":
        raise ProtocolError(INVALID_REQUEST, 'jsonrpc must be "2.0".', of=known)
    if "id" in sent and known is None:
        raise ProtocolError(INVALID_REQUEST, "id must be a text or a whole number.")
    method = sent.get("method")
    if not isinstance(method, str):
        text = "method must be a text, such as tools/call; clients send no responses."
        raise ProtocolError(INVALID_REQUEST, text, of=known)
    params = sent.get("params", {})
    if not isinstance(params, dict):
        raise ProtocolError(INVALID_PARAMS, "params must be an object.", of=known)
    return Message(method, params, known)


def revision_of(message: Message, headers: MultiMapping[str]) -> str:
    """Return the revision of a request. Raises ProtocolError when it is unknown or contradicted."""
    named = message.meta.get(f"{META}protocolVersion")
    header = headers.get("MCP-Protocol-Version")
    if named is None and (message.method == "initialize" or _is_earlier(message, header)):
        return header if header in EARLIER else EARLIER[0]
    revision = seen(header) if named is None else named
    if revision not in (None, *REVISIONS) and (named is None or header in (None, named)):
        data = {"supported": list(REVISIONS), "requested": revision}
        text = f"This revision is unknown; there are: {', '.join(REVISIONS)}."
        raise ProtocolError(UNSUPPORTED_REVISION, text, data, of=message.id)
    capabilities = message.meta.get(f"{META}clientCapabilities")
    if named is None or not isinstance(capabilities, dict):
        lacking = "protocolVersion" if named is None else "clientCapabilities"
        text = f"params._meta must have {META}{lacking}."
        raise ProtocolError(INVALID_PARAMS, text, of=message.id)
    mirrored = {"MCP-Protocol-Version": named, "Mcp-Method": message.method}
    if message.method == NAMED and isinstance(message.params.get("name"), str):
        mirrored["Mcp-Name"] = message.params["name"]
    for name, value in mirrored.items():
        # Of two lines a proxy may have looked at the other one.
        sent = ", ".join(headers.getall(name, ())) or None
        if sent is None or (decoded(sent) if name == "Mcp-Name" else sent) != value:
            told = "is missing" if sent is None else f"has {sent[:64]!r}"
            text = f"The header {name} {told}; the body has {str(value)[:64]!r}."
            raise ProtocolError(HEADER_MISMATCH, text, of=message.id)
    return MODERN if named == MODERN else EARLIER[0]


def seen(header: str | None) -> str | None:
    """Return a header as text that JSON can have: bytes that are no UTF-8 become `\\udc..`."""
    return None if header is None else header.encode("utf-8", "backslashreplace").decode()


def decoded(header: str) -> str | None:
    """Return the value of a header that may be written as `=?base64?…?=`; None if it is invalid."""
    match = _ENCODED.fullmatch(header)
    if match is None:
        return header
    try:
        return base64.b64decode(match[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def encoded(value: str) -> str:
    """Return a value for a header: itself, or in the form of `decoded` when it is not plain."""
    plain = re.fullmatch(r"[!-~](?:[ -~]*[!-~])?", value) and not _ENCODED.fullmatch(value)
    return value if plain else f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def result(message: Message, revision: str, members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response to a request."""
    if revision == MODERN:
        members = {"resultType": "complete", **members}
    return {"jsonrpc": "2.0", "id": message.id, "result": members}


def error(refused: ProtocolError) -> dict[str, Any]:
    """Return the response of a refusal; without an id when the request's is unknown."""
    body: dict[str, Any] = {"code": refused.code, "message": refused.message}
    if refused.data is not None:
        body["data"] = refused.data
    return {"jsonrpc": "2.0"} | ({} if refused.of is None else {"id": refused.of}) | {"error": body}


def _is_earlier(message: Message, header: str | None) -> bool:
    """Return whether a request without `_meta` is one of an earlier revision.

    Those before 2025-06-18 had no header, and what follows `initialize` has only the header.
    """
    return message.method != "server/discover" and (header is None or header in EARLIER)
