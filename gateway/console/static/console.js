// Copy buttons, select-all and times that stay current. Every page works without scripts.
"use strict";

function uncover(within) {
  for (const part of within.querySelectorAll(".js-only")) part.hidden = false;
}
uncover(document);
document.documentElement.classList.add("js");

// A click anywhere in a row follows its link, except on a control or with selected text.
document.addEventListener("click", (event) => {
  const link = event.target.closest(".rows tbody tr")?.querySelector("th > a");
  if (!link || event.target.closest("a, button, input, label, select, summary")) return;
  if (!window.getSelection().isCollapsed) return;
  const { ctrlKey, metaKey, shiftKey } = event;
  link.dispatchEvent(new MouseEvent("click", { ctrlKey, metaKey, shiftKey, cancelable: true }));
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button, a[data-check]");
  if (!button) return;
  if (button.dataset.copy) {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = button.dataset.copied;
    } catch {
      // There is no clipboard over plain http: select the text, so that one key press copies it.
      window.getSelection().selectAllChildren(source);
    }
  }
  if (button.dataset.line) {
    const text = document.getElementById(button.dataset.into);
    const lines = text.value.split("\n").filter((line) => line.trim());
    if (!lines.includes(button.dataset.line)) lines.push(button.dataset.line);
    text.value = `${lines.join("\n")}\n`;
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }
  if (button.dataset.check) {
    event.preventDefault();
    for (const box of button.closest("fieldset").querySelectorAll("input[type=checkbox]")) {
      box.checked = button.dataset.check === "all" && !box.disabled;
    }
    countPicked();
  }
});

// A bar says how many rows are selected; without scripts its buttons work alike.
function countPicked() {
  for (const bar of document.querySelectorAll("[data-picked]")) {
    const boxes = bar.closest("fieldset").querySelectorAll("input[type=checkbox]:checked");
    const text = boxes.length === 1 ? bar.dataset.one : bar.dataset.many;
    bar.textContent = text.replace("{count}", boxes.length);
  }
}
document.addEventListener("change", countPicked);
window.addEventListener("pageshow", countPicked);
countPicked();

// The browser shows what is wrong with a field only where it is in sight.
document.addEventListener("invalid", (event) => {
  const folded = event.target.closest("details");
  if (folded) folded.open = true;
}, true);

// When a form sent by htmx is refused or cannot be sent, the browser sends it and shows the page.
for (const name of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(name, (event) => {
    const { target } = event;
    if (target.matches("form[data-plain-on-error]")) target.submit();
    else if (target.matches("form[data-plain-on-error] button")) target.form.requestSubmit(target);
  });
}

// A list does not move under its reader: a poll changes the rows that are there, and new ones wait.
document.addEventListener("htmx:configRequest", (event) => {
  const { seen } = event.target.dataset;
  if (seen) event.detail.path = event.detail.path.replace(/([?&]seen=)[^&]*/, `$1${seen}`);
});
document.addEventListener("htmx:beforeSwap", (event) => {
  const list = event.detail.target;
  if (event.detail.xhr.status !== 200 || !list.matches("[data-hold]")) return;
  if (!list.querySelector("tbody tr[id]")) return;
  event.detail.shouldSwap = false;
  const page = new DOMParser().parseFromString(event.detail.xhr.responseText, "text/html");
  hold(list, page.getElementById(list.id));
});

function still(cell) {
  return cell.innerHTML.replace(/<time[^>]*>[^<]*<\/time>/g, "");
}

function hold(list, fresh) {
  const rows = new Map([...fresh.querySelectorAll("tbody tr[id]")].map((row) => [row.id, row]));
  const more = fresh.querySelector("#next-page");
  let changed = 0;
  for (const row of list.querySelectorAll("tbody tr[id]")) {
    const news = rows.get(row.id);
    rows.delete(row.id);
    // Of a full page, rows are missing because others came before them.
    if (!news && !more) changed += 1;
    for (const [place, cell] of [...row.cells].entries()) {
      const other = news?.cells[place];
      if (other && still(other) !== still(cell)) cell.innerHTML = other.innerHTML;
    }
  }
  list.dataset.seen = fresh.dataset.seen;
  const { one, many, changed: gone, reload, show } = list.dataset;
  const said = [];
  if (rows.size) said.push((rows.size === 1 ? one : many).replace("{count}", rows.size));
  if (changed) said.push(gone.replace("{count}", changed));
  const news = document.getElementById("news");
  const text = said.join(", ");
  if (news.dataset.said === text) return;
  news.dataset.said = text;
  const link = document.createElement("a");
  link.href = show;
  link.textContent = `${text}: ${reload}`;
  news.replaceChildren(...(text ? [link] : []));
}

// Nor does a swap take the focus away: it returns to the same place, or at least to the part.
let focused = null;
document.addEventListener("htmx:beforeSwap", (event) => {
  const at = document.activeElement;
  focused = null;
  if (!event.detail.shouldSwap || at === document.body || !event.detail.target.contains(at)) return;
  const steps = [];
  let part = at;
  while (!part.id && part !== event.detail.target) {
    steps.unshift([...part.parentElement.children].indexOf(part));
    part = part.parentElement;
  }
  focused = { root: part.id, steps, tag: at.tagName, within: event.detail.target.id };
});
document.addEventListener("htmx:afterSettle", () => {
  if (!focused || document.activeElement !== document.body) return;
  let part = document.getElementById(focused.root);
  for (const step of focused.steps) part = part?.children[step];
  if (part?.tagName !== focused.tag) {
    part = document.getElementById(focused.within);
    part?.setAttribute("tabindex", "-1");
  }
  part?.focus({ preventScroll: true });
  focused = null;
});

// A poll replaces parts of the page: what is open stays open, what is closed stays closed.
let details = new Map();
document.addEventListener("htmx:beforeSwap", () => {
  const all = document.querySelectorAll("main details[id]");
  details = new Map([...all].map((part) => [part.id, part.open]));
});
document.addEventListener("htmx:afterSwap", () => {
  uncover(document);
  for (const [id, open] of details) document.getElementById(id)?.toggleAttribute("open", open);
});

// Times are relative to the server's clock, because this machine's clock may be wrong.
const behind = Number(document.body.dataset.clock) - Date.now();
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

function words(seconds) {
  const said = document.body.dataset;
  if (Math.abs(seconds) < 1 || (seconds >= 0 && seconds < 5)) {
    return seconds < 0 ? said.soon : said.now;
  }
  const whole = Math.floor(seconds < 0 ? 0.5 - seconds : seconds);
  const [size, unit] = UNITS.find(([size]) => whole >= size);
  const span = `${Math.floor(whole / size)} ${unit}`;
  return (seconds < 0 ? said.in : said.ago).replace("{span}", span);
}

setInterval(() => {
  for (const time of document.querySelectorAll("time[datetime]")) {
    time.textContent = words((Date.now() + behind - Date.parse(time.dateTime)) / 1000);
  }
}, 5000);

// Remove `done` from the address, so that a reload does not show the message again.
const here = new URL(location.href);
if (here.searchParams.has("done")) {
  here.searchParams.delete("done");
  history.replaceState(null, "", here);
}

// A slash leads to the search, except where it is typed.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const field = document.querySelector(".find input");
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
});

// An open menu closes at a click elsewhere and at Escape, which leads back to its button.
function closeMenus(except) {
  for (const open of document.querySelectorAll(".menu details[open]")) {
    if (open !== except) open.open = false;
  }
}
document.addEventListener("click", (event) => closeMenus(event.target.closest(".menu details")));
document.addEventListener("focusin", (event) => closeMenus(event.target.closest(".menu details")));
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  document.querySelector(".menu details[open] > summary")?.focus();
  closeMenus(null);
});

// "Add row" adds one here; without scripts the server shows the form with one more.
document.addEventListener("click", (event) => {
  const button = event.target.closest(".add-row");
  if (!button) return;
  event.preventDefault();
  const set = button.closest("[data-rows]");
  const last = [...set.querySelectorAll(":scope > fieldset")].at(-1);
  const number = set.querySelectorAll(":scope > fieldset").length;
  const row = last.cloneNode(true);
  const { rows, most } = set.dataset;
  row.setAttribute("aria-label", row.dataset.label.replace("{number}", number + 1));
  for (const part of row.querySelectorAll(".fault")) part.remove();
  for (const part of row.querySelectorAll("*")) {
    for (const name of ["id", "name", "for", "aria-describedby", "list"]) {
      const value = part.getAttribute(name);
      if (value) part.setAttribute(name, value.replaceAll(`${rows}[${number - 1}]`, `${rows}[${number}]`));
    }
    part.removeAttribute("aria-invalid");
    if (part.matches("input[type=checkbox]")) part.checked = false;
    else if (part.matches("input, textarea")) part.value = "";
    else if (part.matches("select")) part.selectedIndex = 0;
  }
  last.after(row);
  if (number + 1 >= Number(most)) button.hidden = true;
  row.querySelector("input, select, textarea").focus();
});
