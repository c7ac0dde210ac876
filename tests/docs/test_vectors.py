"""docs/vectors.json: as the code makes it, and judged the same by every function of the docs."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks.webhooks
from gidgethub import ValidationFailure, sansio
from standardwebhooks import Webhook, WebhookVerificationError

from tests.docs.languages import HARNESSES, LANGUAGES, PAGE, PROGRAMS, prepare, program
from tests.docs.pages import blocks, text_of
from tests.docs.vectors import FILE, REASONS, VECTORS, text
from tests.support.waiting import HANG_SECONDS


def told() -> list[dict[str, Any]]:
    """The vectors as a reader of the docs gets them."""
    rows: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))["vectors"]
    return rows


def lines() -> str:
    """The vectors for the harnesses: a line each, fields in base64, `-` for an empty one."""

    def field(value: str) -> str:
        return base64.b64encode(value.encode()).decode() or "-"

    return "".join(
        " ".join(
            field(value)
            for value in (
                row["secret"],
                *(row["headers"].get(f"webhook-{n}", "") for n in ("id", "timestamp", "signature")),
                row["body"],
                str(row["now"]),
            )
        )
        + "\n"
        for row in told()
    )


def judged(language: str, folder: Path) -> dict[str, str]:
    """What the function of a language says of each vector."""
    chosen = prepare(language, folder)
    name = chosen.file("harness")
    (folder / name).write_text((HARNESSES / name).read_text())
    done = subprocess.run(
        ["bash", "-c", chosen.command],
        cwd=folder,
        input=lines(),
        env=os.environ | {"GOTOOLCHAIN": "local", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    return dict(zip((row["name"] for row in told()), said, strict=True))


EXPECTED = {each.name: each.reason or "accepted" for each in VECTORS}


def test_the_file_is_what_the_code_makes() -> None:
    assert FILE.read_text("utf-8") == text(), "run: python -m tests.docs.vectors"


def test_every_reason_and_the_page_tell_the_same() -> None:
    assert len(EXPECTED) == len(VECTORS), "two vectors of one name"
    assert set(EXPECTED.values()) == {"accepted", *REASONS}
    section = text_of(PAGE).partition("## Reasons to refuse\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([a-z0-9_]+)` \| [^|]+ \| [^|]+ \|$", section, re.M)
    assert rows == list(REASONS)
    assert f"has {len(VECTORS)} requests" in text_of(PAGE)


def test_every_function_compares_in_constant_time() -> None:
    ways = {
        "python": "hmac.compare_digest(", "node": "timingSafeEqual(", "go": "hmac.Equal(",
        "php": "hash_equals(", "ruby": "OpenSSL.secure_compare(", "java": "MessageDigest.isEqual(",
        "csharp": "CryptographicOperations.FixedTimeEquals(", "shell": 'hmac "$once"',
    }  # fmt: skip
    assert ways.keys() == LANGUAGES.keys()
    for language, way in ways.items():
        assert way in program("verify", language), language


@pytest.mark.proof
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_function_of_a_language_gives_every_verdict_and_reason(
    language: str, tmp_path: Path
) -> None:
    assert judged(language, tmp_path) == EXPECTED


GUARDS = {
    "absent headers": ("if not (event_id and sent_at and signatures)", "if False"),
    "the form of the timestamp": ('if not re.fullmatch("[0-9]{1,12}", sent_at)', "if False"),
    "too old": ("if now - int(sent_at) > 300", "if False"),
    "too old by one": ("now - int(sent_at) > 300", "now - int(sent_at) >= 300"),
    "too new": ("if int(sent_at) - now > 300", "if False"),
    "too new by one": ("int(sent_at) - now > 300", "int(sent_at) - now > 301"),
    "the version": (' if one.startswith("v1,")', ""),
    "every signature": ("for one in given)", "for one in given[:1])"),
    "the signature": ("if not any(", "if any(() for _ in ()) and any("),
    "the whole signature": ("compare_digest(one, right)", "compare_digest(one, right[:len(one)])"),
    "the id": ('f"{event_id}.{sent_at}."', 'f"019a9d1c2f00093e7d5fdbaa.{sent_at}."'),
    "the timestamp": ('f"{event_id}.{sent_at}."', 'f"{event_id}.{now}."'),
    "the body": ("+ body", '+ b""'),
    "the key": ('base64.b64decode(secret.removeprefix("whsec_"))', "secret.encode()"),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_a_function_without_a_guard_is_noticed(guard: str) -> None:
    before, after = GUARDS[guard]
    source = program("verify", "python")
    assert source.count(before) == 1
    names: dict[str, Any] = {}
    exec(source.replace(before, after), names)
    assert any(_verdict(names["refusal"], row) != row["reason"] for row in told())


def _verdict(refusal: Any, row: dict[str, Any]) -> str | None:
    sent = (row["headers"].get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    try:
        return refusal(row["secret"], *sent, row["body"].encode(), row["now"]) or None
    except (ValueError, OverflowError) as error:
        return repr(error)


def test_the_program_of_the_page_reads_the_file(tmp_path: Path) -> None:
    prepare("python", tmp_path)
    [command] = [each for each in blocks(PAGE) if "vectors.py" in each.text]
    shutil.copy(PROGRAMS / "python/vectors.py", tmp_path)
    words = command.text.replace("docs/vectors.json", str(FILE)).replace("python3", sys.executable)

    def said() -> str:
        done = subprocess.run(
            ["bash", "-c", words], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout

    assert said() == "wrong: 0\n"
    verify = tmp_path / "verify.py"
    verify.write_text(verify.read_text().replace("now - int(sent_at) > 300", "False"))
    assert said() == "timestamp_too_old must give timestamp_too_old and not accepted\nwrong: 1\n"


@pytest.mark.parametrize("row", told(), ids=lambda row: str(row["name"]))
def test_standardwebhooks_agrees(row: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class At(datetime):
        """The library reads the clock itself."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> At:
            return cls.fromtimestamp(row["now"], tz)

    monkeypatch.setattr(standardwebhooks.webhooks, "datetime", At)
    assert At.now(UTC).year == 2026
    try:
        Webhook(row["secret"]).verify(row["body"], row["headers"])
        accepted = True
    except json.JSONDecodeError:
        accepted = True  # it reads the body once the signature is right
    except (WebhookVerificationError, ValueError):
        accepted = False
    assert accepted == row["accepted"]


@pytest.mark.parametrize("row", told(), ids=lambda row: str(row["name"]))
def test_gidgethub_agrees_on_the_other_signature(row: dict[str, Any]) -> None:
    signature = row["headers"]["X-Webhook-Signature"]
    try:
        sansio.validate_event(row["body"].encode(), signature=signature, secret=row["secret"])
        accepted = True
    except ValidationFailure:
        accepted = False
    assert accepted == row["acceptedByXWebhookSignature"]
