"""Reads a request that somebody has pasted, as HTTP text or as a curl command, and checks it.

The check finds what is wrong with its signatures, by the secrets of a webhook.
"""

import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from gateway.domain.webhooks.signing import Place, Secret
from outbox.events import encode
from outbox.sending.request import sign_body, sign_standard

REQUEST_LINE = re.compile(r"[A-Z]{3,7} \S+( HTTP/[0-9.]+)?")
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)")
HEADER_WORDS = ("-H", "--header")
BODY_WORDS = ("-d", "--data", "--data-raw", "--data-binary")
# Words of a shell and their parts, as shlex reads them; shlex copies a word for each character.
WORD = re.compile(r"""(?:[^\s'"\\]++|'[^']*+'|"(?:[^"\\]++|\\.)*+"|\\.)++""", re.DOTALL)
PART = re.compile(r"""([^\s'"\\]+)|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
ESCAPED = re.compile(r'\\(["\\])')
BLANKS = " \t\r\n"


class Unreadable(ValueError):
    """The text is no request; the message names the line."""


@dataclass(frozen=True, slots=True)
class Pasted:
    """A request: its headers by their names in lowercase, and its body."""

    headers: Mapping[str, str]
    body: bytes


def read(text: str) -> Pasted:
    """Return the request. A line break after the body comes from pasting and is dropped.

    Raise Unreadable.
    """
    text = text.replace("\r\n", "\n").strip("\n")
    if text.lstrip().startswith("curl "):
        return _of_curl(text)
    headers: dict[str, str] = {}
    lines = text.split("\n")
    for place, line in enumerate(lines):
        # Traces of curl and of other tools begin the lines of a request with this mark.
        line = line.removeprefix("> ").strip()
        if not line:
            return Pasted(headers, "\n".join(lines[place + 1 :]).encode("utf-8", "replace"))
        if line.startswith("{"):
            return Pasted(headers, "\n".join(lines[place:]).encode("utf-8", "replace"))
        header = HEADER.fullmatch(line)
        if header is not None:
            headers[header[1].lower()] = header[2]
        elif place or not REQUEST_LINE.fullmatch(line):
            raise Unreadable(line[:80])
    return Pasted(headers, b"")


def split(text: str) -> Iterator[str]:
    """Yield the words of a command, without their quotes. Raise Unreadable."""
    at = 0
    while at < len(text):
        if text[at] in BLANKS:
            at += 1
            continue
        word = WORD.match(text, at)
        end = word.end() if word else at
        if word is None or (end < len(text) and text[end] not in BLANKS):
            raise Unreadable(text[end : end + 80])
        yield "".join(map(_unquoted, PART.finditer(word[0])))
        at = end


def _unquoted(part: re.Match[str]) -> str:
    if part[3]:
        return ESCAPED.sub(r"\1", part[3])
    return part[1] or part[2] or part[4] or ""


def _of_curl(text: str) -> Pasted:
    words = list(split(text))
    headers: dict[str, str] = {}
    body = ""
    for word, value in pairwise(words):
        if word in HEADER_WORDS:
            header = HEADER.fullmatch(value)
            if header is None:
                raise Unreadable(value[:80])
            headers[header[1].lower()] = header[2]
        elif word in BODY_WORDS:
            body = value
    return Pasted(headers, body.encode("utf-8", "replace"))


TOLERANCE = 300
"""Seconds that a receiver allows between its clock and `webhook-timestamp`."""
DIGITS = re.compile("[0-9]{1,12}")
Reason = Literal[
    "", "missing_header", "malformed_timestamp", "no_v1_signature", "wrong_signature",
]  # fmt: skip
"""Why a signature is refused, as docs/how-to/verify-signatures.md says; empty when it is right."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found about one signature; `by` is the secret that made it."""

    header: str
    reason: Reason
    by: Place | None = None
    reformatted: bool = False
    """It is right for the same JSON in other bytes: those that were sent."""


@dataclass(frozen=True, slots=True)
class Check:
    """Both signatures, and the age of the request in seconds when it is past the tolerance."""

    standard: Verdict
    body: Verdict
    too_old: int | None = None
    too_new: int | None = None


def check(request: Pasted, secrets: Sequence[Secret], now: float) -> Check:
    """Return what a receiver with one of `secrets` would find at `now`, in Unix seconds."""
    standard = _standard(request, secrets)
    age = None
    if standard.reason in ("", "wrong_signature"):
        age = round(now - int(request.headers["webhook-timestamp"]))
    return Check(
        standard,
        _of_body(request, secrets),
        age if age is not None and age > TOLERANCE else None,
        -age if age is not None and age < -TOLERANCE else None,
    )


def _standard(request: Pasted, secrets: Sequence[Secret]) -> Verdict:
    header = "webhook-signature"
    event_id, sent_at, signatures = (
        request.headers.get(name, "") for name in ("webhook-id", "webhook-timestamp", header)
    )
    if not (event_id and sent_at and signatures):
        return Verdict(header, "missing_header")
    if not DIGITS.fullmatch(sent_at):
        return Verdict(header, "malformed_timestamp")
    signatures_v1 = [one for one in signatures.split() if one.startswith("v1,")]
    if not signatures_v1:
        return Verdict(header, "no_v1_signature")
    return _judged(
        header, signatures_v1, request.body, secrets,
        lambda secret, body: sign_standard((secret,), event_id, int(sent_at), body),
    )  # fmt: skip


def _of_body(request: Pasted, secrets: Sequence[Secret]) -> Verdict:
    header = "x-webhook-signature"
    signature = request.headers.get(header, "")
    if not signature:
        return Verdict(header, "missing_header")
    return _judged(header, [signature], request.body, secrets, sign_body)


def _judged(
    header: str,
    signatures: Sequence[str],
    body: bytes,
    secrets: Sequence[Secret],
    sign: Callable[[str, bytes], str],
) -> Verdict:
    for text, reformatted in ((body, False), (_compact(body), True)):
        for secret in secrets:
            right = sign(secret.text, text).encode()
            if any(
                hmac.compare_digest(right, one.encode("utf-8", "replace")) for one in signatures
            ):
                return Verdict(header, "", secret.place, reformatted)
    return Verdict(header, "wrong_signature")


def _compact(body: bytes) -> bytes:
    """Return a JSON body as Carteiro writes it; any other body unchanged."""
    try:
        return encode(json.loads(body))
    except (ValueError, RecursionError):
        return body
