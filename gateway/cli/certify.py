"""`carteiro certify`: tests a receiver by test events, right ones and wrong ones."""

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import json

from gateway import texts
from gateway.cli import tables
from gateway.cli.commands import Say
from gateway.cli.doctor import request_for
from gateway.cli.endings import Inconclusive
from gateway.cli.language import spoken
from gateway.domain.webhooks import certification, findings, pings
from gateway.server.config import Config
from gateway.server.delivery import doctor_of, rules_of, settings_of
from gateway.server.parts import PARTS
from gateway.texts import Texts
from outbox.clock import Clock
from outbox.errors import OutboxError
from outbox.ids import Ids, is_id
from outbox.sending.addresses import Rules, parse_place
from outbox.sending.egress_guard import Guard
from outbox.sending.request import Header, Request, check_headers, sign_standard
from outbox.sending.urls import Refused, check_url
from outbox.worker.certification.judging import Finding, Verdict
from outbox.worker.certification.run import Certification
from outbox.worker.examination import Doctor

SECRET_VARIABLE = "WEBHOOK_SECRET"  # noqa: S105 - the name of a variable
MOST_SECONDS = 600.0
LOOPBACK = ("127.0.0.0/8", "[::1/128]")
WIDTH = 52
MARKS: Mapping[Verdict, str] = {
    "passed": "ok", "warning": "warn", "unjudged": "?", "failed": "FAILED",
}  # fmt: skip


class Uncertified(OutboxError):
    """The receiver has a fault; the text counts the checks."""


async def certify(config: Config, arguments: Namespace, say: Say) -> None:
    """Certify a URL, or a webhook by its id. Raise Uncertified, Inconclusive."""
    clock, ids, t = (arguments.parts or PARTS).clock, Ids(), spoken()
    guard = Guard(_rules(config, arguments), clock)
    examiner = doctor_of(config, guard, clock, ids)
    timeout = arguments.timeout or settings_of(config).timeout

    def heard(finding: Finding) -> None:
        if not arguments.json and finding.code != "not_sent":
            say(line(t, finding, timeout))

    try:
        if is_id(arguments.target):
            request, events = await _of_webhook(config, examiner, arguments, ids)
            timeout = request.timeout_s
        else:
            request, events = _of_url(arguments, guard.rules, clock, ids, timeout), ()
        material = certification.material(events, clock.wall(), ids)
        result = await examiner.certify(request, material, MOST_SECONDS, heard)
    finally:
        await examiner.close()
        await guard.close()
    if arguments.json:
        say(json.encode(record(result, timeout)).decode())
    else:
        if untried := sum(one.code == "not_sent" for one in result.findings):
            say(t("certify.not_tried", count=untried))
        say("")
        say(f"{t(f'certify.result.{result.result}')} {findings.counts(t, result)}")
        say(f"{findings.ids(t, result)} {t('cli.certify.ids')}")
    _end(result)


def line(t: Texts, finding: Finding, timeout_s: float) -> str:
    """Return the line of a finding for people."""
    title = t(f"certify.check.{finding.check}")
    said = findings.sentence(t, finding, timeout_s)
    return tables.inert(f"{MARKS[finding.verdict]:7} {title:{WIDTH}}  {said}")


def record(result: Certification, timeout_s: float) -> Mapping[str, Any]:
    """Return the same as JSON; docs/reference/commands.md lists the fields."""
    english = texts.of("en")
    return {
        "url": result.url,
        "result": result.result,
        "requests": result.sent,
        "micros": result.micros,
        "checks": [
            {
                "check": finding.check, "verdict": finding.verdict, "code": finding.code,
                "status": finding.status, "error": finding.error, "micros": finding.micros,
                "requests": finding.sent, "wrong": finding.wrong,
                "text": findings.sentence(english, finding, timeout_s),
            }
            for finding in result.findings
        ],
        "accepted": result.accepted,
        "forbidden": result.forbidden,
    }  # fmt: skip


def _end(result: Certification) -> None:
    verdicts = [finding.verdict for finding in result.findings]
    if result.result == "failed":
        raise Uncertified(f"{verdicts.count('failed')} of {len(verdicts)} checks failed")
    if result.result == "unjudged":
        first = next(one for one in result.findings if one.verdict == "unjudged")
        why = tables.inert(first.error or first.code)
        raise Inconclusive(f"the receiver could not be judged: {first.check}: {why}")


def _rules(config: Config, arguments: Namespace) -> Rules:
    """Return the rules of the installation, and with --loopback this machine beside them."""
    rules = rules_of(config.egress)
    if arguments.loopback:
        port = arguments.target.rpartition(":")[2].partition("/")[0].partition("?")[0]
        ending = f":{port}" if port.isdecimal() else ""
        try:
            places = tuple(parse_place(f"{network}{ending}") for network in LOOPBACK)
        except ValueError as error:
            raise Inconclusive(f"{arguments.target}: {error}") from None
        rules = replace(rules, allow_http=True, allow=(*rules.allow, *places))
    return replace(
        rules,
        http_setting="--loopback for a receiver on this machine, otherwise [egress] allow_http, "
        "and [egress] allow for a private address",
        allow_setting="--loopback for a receiver on this machine, otherwise [egress] allow",
    )


def _of_url(
    arguments: Namespace, rules: Rules, clock: Clock, ids: Ids, timeout_s: float
) -> Request:
    try:
        check_url(arguments.target, rules)
    except Refused as refused:
        raise Inconclusive(f"{arguments.target}: {refused}") from None
    secret, headers = secret_of(arguments), headers_of(arguments)
    request = pings.of_url(arguments.target, secret, clock=clock, ids=ids, timeout_s=timeout_s)
    return replace(request, headers=headers)


async def _of_webhook(
    config: Config, examiner: Doctor, arguments: Namespace, ids: Ids
) -> tuple[Request, tuple[str, ...]]:
    if arguments.secret or arguments.secret_file or arguments.header or arguments.timeout:
        raise Inconclusive(
            "a webhook has its own secret, headers and timeout; leave these options out"
        )
    webhook, ring, delivery, endpoint = await request_for(config, arguments.target.lower(), ids)
    return examiner.request_of(ring, delivery, endpoint), tuple(webhook.events)


def secret_of(arguments: Namespace, environment: Mapping[str, str] = os.environ) -> str:
    """Return the secret of the receiver: of an option, else of the environment."""
    secret = arguments.secret or ""
    if arguments.secret_file:
        secret = _read(arguments.secret_file)
    secret = secret or environment.get(SECRET_VARIABLE, "")
    if not secret:
        raise Inconclusive(
            "the secret of the receiver is needed: give it in "
            f"${SECRET_VARIABLE}, or a file of it with --secret-file"
        )
    try:
        sign_standard((secret,), "", 0, b"")
    except ValueError:
        raise Inconclusive(
            "the secret must be the text that the console has shown, whsec_ included"
        ) from None
    return secret


def _read(file: str) -> str:
    """Return the first line of a file, or of standard input for `-`."""
    try:
        text = sys.stdin.readline() if file == "-" else Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Inconclusive(f"--secret-file {file}: {error}") from None
    return text.strip().partition("\n")[0]


def headers_of(arguments: Namespace) -> tuple[Header, ...]:
    """Return the headers of --header, `Name: value` each."""
    pairs = [one.partition(":") for one in arguments.header or ()]
    headers = tuple((name.strip(), value.strip()) for name, _, value in pairs)
    try:
        check_headers(headers)
    except ValueError as error:
        raise Inconclusive(f"--header: {error}") from None
    return headers
