"""The image, built and run without a container engine (`make test-faults`; some minutes)."""

from __future__ import annotations

import pytest

from tests.deploy.image import run_image

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1800)]


def test_the_image_is_built_and_runs_without_rights() -> None:
    told = run_image()
    assert told["findings"] == []
