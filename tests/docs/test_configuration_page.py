"""The page of the configuration is made from config.toml."""

from tests.architecture.tree import ROOT
from tests.docs.configuration_page import page


def test_the_page_is_up_to_date() -> None:
    text = (ROOT / "docs/reference/configuration.md").read_text()
    command = "python -m tests.docs.configuration_page > docs/reference/configuration.md"
    assert text == page(), f"run {command}"
