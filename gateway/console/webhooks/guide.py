"""The receiver's guide of a webhook: programs that verify its requests, and a check of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from aiohttp import web

from gateway.console.layout import pages, templates
from gateway.console.layout.guard import Form, SignedIn
from gateway.console.webhooks import pasted_request
from gateway.domain.webhooks import signing
from gateway.server.app_keys import DB, KEYRING
from outbox.durations import SECOND
from outbox.events import message
from outbox.sending.request import sign_standard
from outbox.webhooks import Webhook

FOLDER = Path(__file__).parents[1] / "guides"
HIDDEN = "whsec_…"
"""In place of a secret that is not shown any more."""
EXAMPLE_ID = "example"


@dataclass(frozen=True, slots=True)
class Language:
    """A language of the guide, the files of its two programs, and the command that runs them."""

    key: str
    name: str
    verify: str
    check: str
    command: str


LANGUAGES = (
    Language("python", "Python", "verify.py", "check.py", "python3 check.py"),
    Language("node", "JavaScript", "verify.mjs", "check.mjs", "node check.mjs"),
    Language("go", "Go", "verify.go", "check.go", "go run check.go verify.go"),
    Language("php", "PHP", "verify.php", "check.php", "php check.php"),
    Language("ruby", "Ruby", "verify.rb", "check.rb", "ruby check.rb"),
    Language(
        "java", "Java", "Verify.java", "Check.java", "javac Verify.java Check.java && java Check"
    ),
)


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one language: the function to copy, and an example with the secret."""

    language: Language
    verify: str
    check: str


def programs(shown: str, signer: str, now: int) -> Sequence[Programs]:
    """Return the programs with the secret `shown`; the example is signed with `signer`."""
    at = now // SECOND
    body = message("contact.created", now, {"id": EXAMPLE_ID})
    text = body.decode()
    values = {
        "secret": shown, "id": EXAMPLE_ID, "at": str(at), "body": text,
        "escaped": text.replace('"', '\\"'),
        "signature": sign_standard((signer,), EXAMPLE_ID, at, body),
    }  # fmt: skip
    examples = []
    for language in LANGUAGES:
        check = _text(language.key, "check")
        for name, value in values.items():
            check = check.replace(f"@{name}@", value)
        examples.append(Programs(language, _text(language.key, "verify"), check))
    return examples


def with_secret(request: web.Request, shown: str | None) -> Sequence[Programs]:
    """Return the programs with a secret that the page shows; none when it shows no secret."""
    return [] if shown is None else programs(shown, shown, request.app[DB].clock.wall())


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the guide without a secret, and an empty check."""
    webhook, secrets = await _secrets(request, visitor)
    return _page(request, visitor, webhook, secrets, {"pasted": "", "found": None, "fault": ""})


async def check(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Check the signatures of a pasted request; nothing of it is stored."""
    webhook, secrets = await _secrets(request, visitor)
    text = form.text("request")
    context: dict[str, Any] = {"pasted": text, "found": None, "fault": ""}
    try:
        pasted = pasted_request.read(text)
        now = request.app[DB].clock.wall() / SECOND
        context["found"] = pasted_request.check(pasted, secrets, now)
    except pasted_request.Unreadable as why:
        context["fault"] = str(why)
    return _page(request, visitor, webhook, secrets, context)


async def _secrets(
    request: web.Request, visitor: SignedIn
) -> tuple[Webhook, Sequence[signing.Secret]]:
    return await request.app[DB].read(
        signing.secrets, visitor.actor, pages.id_of(request), request.app[KEYRING]
    )


def _page(
    request: web.Request,
    visitor: SignedIn,
    webhook: Webhook,
    secrets: Sequence[signing.Secret],
    context: dict[str, Any],
) -> web.Response:
    examples = programs(HIDDEN, secrets[0].text, request.app[DB].clock.wall())
    values = {**context, "webhook": webhook, "programs": examples, "secret": None}
    return templates.render(request, visitor, "guide.html", values)


@cache
def _text(language: str, kind: str) -> str:
    return (FOLDER / f"{language}.{kind}.txt").read_text()
