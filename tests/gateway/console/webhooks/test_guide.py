"""The receiver's guide: its programs in six languages, and the check of a pasted request."""

from __future__ import annotations

import subprocess
from html import unescape
from pathlib import Path

import pytest

from gateway.console.webhooks import guide, pasted_request
from gateway.console.webhooks.guide import LANGUAGES, Language
from gateway.console.webhooks.pasted_request import Check, Unreadable, check
from gateway.domain.webhooks.signing import Secret
from outbox.events import message
from outbox.sending.request import new_secret, sign_body, sign_standard
from tests.docs.languages import LANGUAGES as TESTED
from tests.docs.languages import program
from tests.support.console import Guest
from tests.support.requirements import need

NOW = 1_795_375_440
SECRET = new_secret(bytes(32))
OTHER = new_secret(b"\1" * 32)
BODY = message("contact.created", NOW * 1_000_000, {"name": "João", "total": 12.5})


def headers(secret: str = SECRET, body: bytes = BODY, at: int = NOW) -> dict[str, str]:
    return {
        "X-Webhook-Signature": sign_body(secret, body), "webhook-id": "e1",
        "webhook-timestamp": str(at), "webhook-signature": sign_standard((secret,), "e1", at, body),
    }  # fmt: skip


def text(named: dict[str, str], body: bytes = BODY) -> str:
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"POST /hook HTTP/1.1\r\n{lines}\r\n{body.decode()}\r\n"


def found(request: str, *secrets: Secret) -> Check:
    return check(pasted_request.read(request), secrets or (Secret("current", SECRET),), NOW)


def test_the_function_is_that_of_the_docs() -> None:
    for made in guide.programs(SECRET, SECRET, NOW):
        assert made.verify == program("verify", made.language.key)
        assert SECRET in made.check
        assert "@" not in made.check


@pytest.mark.proof
@pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: one.key)
def test_the_example_is_genuine_and_nothing_else_is(language: Language, tmp_path: Path) -> None:
    for tool in TESTED[language.key].tools:
        need(tool)
    said = []
    for shown in (SECRET, OTHER):
        programs = guide.programs(shown, SECRET, NOW * 1_000_000)
        [made] = [one for one in programs if one.language == language]
        (tmp_path / language.verify).write_text(made.verify)
        (tmp_path / language.check).write_text(made.check)
        ran = subprocess.run(
            ["bash", "-ec", language.command], cwd=tmp_path, capture_output=True, text=True,
            timeout=120, check=True,
        )  # fmt: skip
        said.append(ran.stdout)
    assert said == ["genuine\n", "wrong_signature\n"]


def test_what_is_wrong_is_named() -> None:
    for change, standard, of_body in (
        ({}, "", ""),
        ({"webhook-id": ""}, "missing_header", ""),
        ({"webhook-timestamp": "soon"}, "malformed_timestamp", ""),
        ({"webhook-timestamp": "²"}, "malformed_timestamp", ""),
        ({"webhook-timestamp": str(NOW + 1)}, "wrong_signature", ""),
        ({"webhook-id": "e2"}, "wrong_signature", ""),
        ({"webhook-signature": "v2,abc"}, "no_v1_signature", ""),
        ({"webhook-signature": "v1,é"}, "wrong_signature", ""),
        ({"X-Webhook-Signature": ""}, "", "missing_header"),
        ({"X-Webhook-Signature": "sha256=00"}, "", "wrong_signature"),
    ):
        verdict = found(text(headers() | change))
        assert (verdict.standard.reason, verdict.body.reason) == (standard, of_body), change


def test_a_changed_body_is_wrong_and_a_reformatted_one_is_told() -> None:
    wrong = found(text(headers(), BODY.replace("João".encode(), b"Joao")))
    assert (wrong.standard.reason, wrong.body.reason) == ("wrong_signature", "wrong_signature")
    spaced = found(text(headers(), BODY.replace(b":", b": ").replace(b",", b",\n  ")))
    assert (spaced.standard.reason, spaced.standard.reformatted) == ("", True)
    assert (spaced.body.reason, spaced.body.reformatted) == ("", True)
    for odd in (b"[" * 10_000, b"", b"{", b"NaN", b'{"a":1e999}'):
        assert found(text(headers(), odd)).body.reason == "wrong_signature"


def test_requests_are_read_in_several_forms() -> None:
    named = {name.lower(): value for name, value in headers().items()}
    plain = text(headers())
    traced = "".join(f"> {line}\n" for line in plain.splitlines()[:-2]) + f"\n{BODY.decode()}"
    command = "curl -X POST https://shop.example/hook \\\r\n" + "".join(
        f"  -H '{name}: {value}' \\\r\n" for name, value in headers().items()
    )
    for request in (plain, plain.partition("\r\n")[2], traced, plain.replace("\r\n\r\n", "\r\n"),
                    command + f"  --data-binary '{BODY.decode()}'"):  # fmt: skip
        assert pasted_request.read(request) == pasted_request.Pasted(named, BODY)
    assert pasted_request.read("a: b") == pasted_request.Pasted({"a": "b"}, b"")
    for wrong in ("what is this", "a: b\nwhat is this\n\n{}", "curl 'x", "curl -H x"):
        with pytest.raises(Unreadable):
            pasted_request.read(wrong)


async def test_the_secret_stands_in_the_programs_once(maria: Guest, rui: Guest) -> None:
    made = await maria.webhook("https://shop.example/hook")
    secret = made.test_id("webhook-secret")
    assert secret
    for language in LANGUAGES:
        assert secret in unescape(made.test_id(f"check-{language.key}") or "")
    path = f"/console/webhooks/{made.id}/guide"
    again = await maria.get(path)
    assert secret not in again.html
    assert "whsec_…" in (again.test_id("check-python") or "")
    at = int((again.test_id("check-python") or "").partition('"example", "')[2][:10])
    body = message("contact.created", at * 1_000_000, {"id": "x"})
    judged = await maria.submit(path, request=text(headers(secret, body, at), body))
    assert judged.status == 200
    assert judged.html.count("right, made with the current secret") == 2
    judged = await maria.submit(path, request=text(headers(OTHER, body, at), body))
    assert judged.html.count("was signed with another secret") == 2
    judged = await maria.submit(path, request="<script>alert(1)</script>")
    assert "<script>alert" not in judged.html
    assert "This is not a header" in judged.html
    assert (await rui.get(path)).status == 403
    assert (await rui.submit(path, at="/console/keys", request="a: b")).status == 403
