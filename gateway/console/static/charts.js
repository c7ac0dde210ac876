// Reading of charts: a line at the same step of all charts, and the step's row of the table.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const tip = document.createElement("div");
tip.className = "tip card";
tip.setAttribute("role", "status");
tip.hidden = true;
document.body.append(tip);
let shown = null; // The chart's id and the step that are read now.
let kept = null; // What a poll must not disturb, while it replaces the charts.

// A page may have several boards: charts of the same time, and their table.
function boardOf(chart) {
  return chart.closest("[data-charts]");
}

function hide() {
  shown = null;
  tip.hidden = true;
  for (const line of document.querySelectorAll(".cursor")) line.remove();
}

function show(chart, step) {
  const board = boardOf(chart);
  const count = Number(board.dataset.charts);
  for (const line of document.querySelectorAll(".cursor")) {
    if (boardOf(line) !== board) line.remove();
  }
  shown = { id: chart.id, step: Math.min(Math.max(step, 0), count - 1) };
  for (const other of board.querySelectorAll("svg")) {
    let line = other.querySelector(".cursor");
    if (!line) {
      line = document.createElementNS(SVG, "path");
      line.setAttribute("class", "cursor");
      other.append(line);
    }
    const x = (other.viewBox.baseVal.width / count) * (shown.step + 0.5);
    line.setAttribute("d", `M${x} 0V100`);
  }
  tell(chart, count);
}

// The figures are those of the table, in its order and its words.
function tell(chart, count) {
  const row = boardOf(chart).querySelector(`tr[data-step="${shown.step}"]`);
  tip.replaceChildren();
  tip.hidden = !row;
  if (!row) return;
  const head = document.createElement("b");
  head.textContent = row.querySelector("th").textContent;
  const list = document.createElement("dl");
  for (const cell of row.querySelectorAll("td")) {
    const [name, value] = [document.createElement("dt"), document.createElement("dd")];
    name.textContent = cell.dataset.label;
    value.textContent = cell.textContent;
    list.append(name, value);
  }
  tip.append(head, list);
  const box = chart.getBoundingClientRect();
  const x = box.left + (box.width / count) * (shown.step + 0.5);
  const right = x + 16 + tip.offsetWidth > document.documentElement.clientWidth;
  const left = right ? Math.max(x - 16 - tip.offsetWidth, 4) : x + 16;
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${box.top + window.scrollY + 8}px`;
}

function under(event) {
  const chart = event.target.closest?.("[data-charts] svg");
  if (!chart) return;
  const box = chart.getBoundingClientRect();
  const count = Number(boardOf(chart).dataset.charts);
  show(chart, Math.floor(((event.clientX - box.left) / box.width) * count));
}

document.addEventListener("pointermove", under);
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest?.("[data-charts] svg")) hide();
  under(event);
});
document.addEventListener("pointerout", (event) => {
  const inside = (node) => node?.closest?.("[data-charts] svg");
  if (event.pointerType === "mouse" && inside(event.target) && !inside(event.relatedTarget)) hide();
});

const MOVES = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };

document.addEventListener("keydown", (event) => {
  const chart = event.target.closest?.("[data-charts] svg");
  if (event.key === "Escape") hide();
  if (!chart || !(event.key in MOVES)) return;
  event.preventDefault();
  const last = Number(boardOf(chart).dataset.charts) - 1;
  show(chart, (shown?.id === chart.id ? shown.step : last + 1) + MOVES[event.key]);
});
document.addEventListener("focusout", () => {
  if (!kept) hide();
});

function reachable() {
  for (const chart of document.querySelectorAll("[data-charts] svg")) chart.tabIndex = 0;
}

// A poll replaces charts and table: what is open, focused or read stays so.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.detail.shouldSwap) return;
  const open = [...document.querySelectorAll("[data-charts] details[open]")].map((part) => part.id);
  kept = { open, focus: document.activeElement.closest("[data-charts] svg")?.id };
});
document.addEventListener("htmx:afterSwap", () => {
  reachable();
  for (const id of kept?.open ?? []) document.getElementById(id)?.setAttribute("open", "");
  if (kept?.focus) document.getElementById(kept.focus)?.focus({ preventScroll: true });
  kept = null;
  const chart = shown && document.getElementById(shown.id);
  if (chart) show(chart, shown.step);
  else hide();
});
reachable();
