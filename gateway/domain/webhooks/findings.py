"""The sentences for what a certification has found, in the language of the reader."""

from gateway.texts import Texts
from outbox.worker.certification.judging import Finding
from outbox.worker.certification.run import Certification

WITH_FIX = frozenset({"accepted", "refused", "crashed", "overloaded", "late"})
"""Codes whose fix depends on the check."""


def sentence(t: Texts, finding: Finding, timeout_s: float) -> str:
    """Return what the receiver did, and what to change."""
    if finding.verdict == "passed":
        known = finding.status is not None and finding.sent == 1
        return t("certify.code.answered" if known else "certify.code.ok", status=finding.status)
    said = [
        t(
            f"certify.code.{finding.code}", status=finding.status, error=finding.error or "-",
            seconds=f"{timeout_s:g}", took=t.took(finding.micros),
        )
    ]  # fmt: skip
    if finding.wrong and finding.sent > 1:
        said.append(t("certify.several", wrong=finding.wrong, sent=finding.sent))
    if finding.code in WITH_FIX:
        said.append(t(f"certify.fix.{finding.check}", event=finding.event))
    return " ".join(said)


def counts(t: Texts, found: Certification) -> str:
    """Return how many checks ended in which way."""
    verdicts = [finding.verdict for finding in found.findings]
    return t(
        "certify.counts", passed=verdicts.count("passed"), warnings=verdicts.count("warning"),
        failed=verdicts.count("failed"), unjudged=verdicts.count("unjudged"), sent=found.sent,
        took=t.took(found.micros),
    )  # fmt: skip


def ids(t: Texts, found: Certification) -> str:
    """Return how many events the receiver must have, and how many it must not."""
    return t("certify.ids", accepted=len(found.accepted), forbidden=len(found.forbidden))
