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
  const button = event.target.closest("button");
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
  if (button.dataset.check) {
    for (const box of button.closest("fieldset").querySelectorAll("input[type=checkbox]")) {
      box.checked = button.dataset.check === "all";
    }
  }
});

// When a form sent by htmx is refused or cannot be sent, the browser sends it and shows the page.
for (const name of ["htmx:responseError", "htmx:sendError"]) {
  document.addEventListener(name, (event) => {
    const { target } = event;
    if (target.matches("form[data-plain-on-error]")) target.submit();
    else if (target.matches("form[data-plain-on-error] button")) target.form.requestSubmit(target);
  });
}

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
