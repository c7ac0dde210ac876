"""Axe-core in a page of a browser: what people with a disability could not use there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.node import package

if TYPE_CHECKING:
    from playwright.async_api import Page

# A few places of each rule; one fault of a repeated part would fill pages.
_RUN = """async (within) => {
  const found = await axe.run(within, { resultTypes: ["violations"] });
  return found.violations
    .filter((rule) => rule.impact === "serious" || rule.impact === "critical")
    .map((rule) => [`${rule.id} (${rule.impact}, ${rule.nodes.length}): ${rule.help}`,
      ...rule.nodes.slice(0, 5).map((node) => `  ${node.target.join(" ")}: ` +
        node.failureSummary.split("\\n").slice(1).join(";").trim() +
        ` in ${node.html.slice(0, 160)}`)].join("\\n"));
}"""


async def axe(page: Page, within: str = "html") -> None:
    """Fail with the serious and critical faults that axe-core finds in the page as it is shown.

    `within` selects the part of the page that it looks at.
    """
    # Evaluated, not added as a script, so that the page's policy stays as it is.
    if not await page.evaluate("() => 'axe' in globalThis"):
        await page.evaluate((package("axe-core") / "axe.min.js").read_text("utf-8"))
    faults = await page.evaluate(_RUN, within)
    if faults:
        raise AssertionError("\n".join([page.url, *faults]))
