"""The page docs/reference/storefront.md names every release and limit of the endpoint."""

import re

from gateway.graphql.versions import RELEASES
from tests.architecture.tree import ROOT

PAGE = (ROOT / "docs/reference/storefront.md").read_text("utf-8")


def test_every_release_is_documented() -> None:
    assert re.findall(r"^\| `(\d{4}-\d\d-\d\d)` \|", PAGE, re.MULTILINE) == list(RELEASES)
