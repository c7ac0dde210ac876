"""Writes docs/reference/checks.md from the checks of `carteiro certify` and their texts."""

from collections.abc import Iterator

from gateway import texts
from outbox.worker.certification.checks import CHECKS, GENUINE, SEEN

TABLE = """\
| check | sends | must be | otherwise | change |
| --- | --- | --- | --- | --- |"""
ABOUT_ALL = """
These checks look at all responses. `quick` allows 5 seconds, or a third of the timeout if that is
less.

| check | looks at | otherwise |
| --- | --- | --- |"""
EN = texts.of("en")


def lines() -> Iterator[str]:
    """Yield the generated part of the page."""
    yield TABLE
    for check in (GENUINE, *CHECKS):
        sends, change = EN(f"certify.check.{check.name}"), EN(f"certify.fix.{check.name}")
        change = change.replace("{event}", "each event")
        must = "accepted" if check.accepts else "refused"
        verdict = "warning" if check.mild else "fault"
        yield f"| `{check.name}` | {sends} | {must} | {verdict} | {change} |"
    yield ABOUT_ALL
    for name in SEEN:
        verdict = "fault" if name == "silent" else "warning"
        yield f"| `{name}` | {EN(f'certify.check.{name}')} | {verdict} |"
