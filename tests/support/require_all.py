"""Pytest hooks: under REQUIRE_ALL=1 a skipped test, or a module skipped as a whole, fails."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


def demanded() -> bool:
    """Whether this run may skip nothing."""
    return os.environ.get("REQUIRE_ALL") == "1"


def _fail(report: pytest.TestReport | pytest.CollectReport) -> None:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    report.outcome = "failed"
    report.longrepr = f"REQUIRE_ALL=1 and this was skipped: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if demanded() and report.skipped and not hasattr(report, "wasxfail"):
        _fail(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if demanded() and report.skipped:
        _fail(report)
    return report
