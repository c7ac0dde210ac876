"""What bars somebody from a page, or does not fit, in a browser as it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.node import package

if TYPE_CHECKING:
    from playwright.async_api import Page

# Serious and critical faults that axe-core finds; a few places of each, as one fault of a part that
# repeats would fill pages.
AXE = """async (within) => {
  // A colour on its way to another one has the contrast of neither.
  const ends = (motion) => motion.effect.getComputedTiming().endTime < Infinity;
  await Promise.allSettled(document.getAnimations().filter(ends).map((motion) => motion.finished));
  const found = await axe.run(within, { resultTypes: ["violations"] });
  return found.violations
    .filter((rule) => rule.impact === "serious" || rule.impact === "critical")
    .map((rule) => [`${rule.id} (${rule.impact}, ${rule.nodes.length}): ${rule.help}`,
      ...rule.nodes.slice(0, 5).map((node) => `  ${node.target.join(" ")}: ` +
        node.failureSummary.split("\\n").slice(1).join(";").trim() +
        ` in ${node.html.slice(0, 160)}`)].join("\\n"));
}"""

# What leaves the page or its own box, is cut off without saying so, or lies on another control; and
# targets that are too small (WCAG 2.2, 2.5.8), where the label of a box is a part of it.
LAYOUT = """() => {
  const bad = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) bad.push("scrolls sideways");
  if (document.querySelectorAll("h1").length !== 1) bad.push("not one h1");
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of ids.filter((id, n) => ids.indexOf(id) !== n)) bad.push(`two of an id: ${id}`);
  const of = (e) => e.outerHTML.slice(0, 100).replaceAll("\\n", " ");
  // What is for screen readers alone, such as the heads of tables on a phone; the skip link waits
  // outside.
  const seen = (e) => e.checkVisibility() && !e.closest(".skip, .whole, .only-read, .default") &&
    !(e.closest("thead") && getComputedStyle(e.closest("thead")).position === "absolute");
  // These say that there is more: an ellipsis, a caret that walks on, a part that scrolls.
  const more = (e) =>
    e.closest(".clamp, .cut, .crumbs, .brand, .who, input, textarea, pre, .board");
  for (const e of document.body.querySelectorAll("*")) {
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height || !seen(e) || more(e)) continue;
    if (box.right > width + 0.5 || box.left < -0.5) bad.push(`outside: ${of(e)}`);
    const inline = getComputedStyle(e).display === "inline";
    if (!inline && e.scrollWidth > e.clientWidth + 1) bad.push(`too long: ${of(e)}`);
  }
  const acts = [...document.querySelectorAll("a, button, input, select, textarea, summary")]
    .filter((e) => seen(e) && e.type !== "hidden").map((e) => [e, e.getBoundingClientRect()]);
  for (const [n, [one, a]] of acts.entries()) for (const [two, b] of acts.slice(n + 1)) {
    // A bar that stays in sight lies on the rows behind it.
    if (one.closest(".picked") !== two.closest(".picked")) continue;
    const over = (from, to) => Math.min(a[to], b[to]) - Math.max(a[from], b[from]) > 1;
    if (over("left", "right") && over("top", "bottom") && !one.contains(two))
      bad.push(`on each other: ${of(one)} ${of(two)}`);
  }
  for (const [e, own] of acts) {
    const label = e.matches("[type=checkbox], [type=radio]") && e.closest("label");
    const box = label ? label.getBoundingClientRect() : own;
    if (box.width < 24 || box.height < 24) bad.push(`too small: ${of(e)}`);
  }
  return bad;
}"""


async def faults(page: Page, within: str = "html") -> list[str]:
    """Return everything that is wrong with a page; bars only in the part `within`."""
    return [*await bars(page, within), *await page.evaluate(LAYOUT)]


async def bars(page: Page, within: str = "html") -> list[str]:
    """Return what bars people with a disability from the part of the page that `within` selects."""
    # Evaluated, not added as an element, so that the page's policy stays as it is.
    if not await page.evaluate("() => 'axe' in globalThis"):
        await page.evaluate(_axe())
    found: list[str] = await page.evaluate(AXE, within)
    return found


async def expect_bars(page: Page) -> None:
    """Have axe-core in each page from now on, which is quicker than to send it to each."""
    await page.add_init_script(_axe())


def _axe() -> str:
    return (package("axe-core") / "axe.min.js").read_text("utf-8")
