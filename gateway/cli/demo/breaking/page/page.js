// Shows the ledger as it changes, and asks for the act of a button.
"use strict";

const said = JSON.parse(document.body.dataset.said);
const names = JSON.parse(document.body.dataset.names);
const language = document.documentElement.lang;
const whole = new Intl.NumberFormat(language);
const tenths = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const buttons = [...document.querySelectorAll("[data-act]")];
const LOOK = 500;
let asked = false;

function show(id, text) {
  const part = document.getElementById(id);
  if (part.textContent !== text) part.textContent = text;
}

function row(cells) {
  const line = document.createElement("tr");
  cells.forEach((content, place) => {
    const cell = document.createElement(place ? "td" : "th");
    if (!place) cell.scope = "row";
    if (place) cell.className = "number";
    cell.append(content);
    line.append(cell);
  });
  return line;
}

function badge(text, kind) {
  const part = document.createElement("span");
  part.className = `badge is-${kind}`;
  part.textContent = text;
  return part;
}

const seconds = (number) => said.seconds.replace("{seconds}", tenths.format(number));

function named(act) {
  const part = document.createElement("span");
  part.append(names[act.name], " ");
  const kind = { fault: "disabled", recovering: "paused", recovered: "active", failed: "disabled" }[act.state];
  part.append(badge(said[act.state], kind));
  return part;
}

// Bars: deliveries of each second. Line: deliveries that wait.
function draw(points) {
  const width = 600 / 120;
  const rates = points.slice(1).map(([sum], place) => sum - points[place][0]);
  const waits = points.slice(1).map(([, waiting]) => waiting);
  const top = Math.max(8, ...rates, ...waits);
  const left = 120 - rates.length;
  const high = (value) => (value / top) * 88;
  const bars = rates.map((rate, place) => {
    const x = (left + place) * width;
    return `M${x + 0.5} 96v${-high(rate).toFixed(1)}h${width - 1}V96z`;
  });
  const line = waits.map((waiting, place) => {
    return `${place ? "L" : "M"}${((left + place + 0.5) * width).toFixed(1)} ${(95 - high(waiting)).toFixed(1)}`;
  });
  const chart = document.getElementById("chart");
  if (!chart.children.length) {
    for (const kind of ["delivered", "waiting"]) {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("class", `is-${kind}`);
      chart.append(path);
    }
  }
  chart.children[0].setAttribute("d", bars.join(""));
  chart.children[1].setAttribute("d", line.join(""));
}

function fill(ledger) {
  for (const name of ["written", "delivered", "waiting", "repeats", "lost"]) {
    show(name, whole.format(ledger[name]));
  }
  document.getElementById("lost-box").classList.toggle("is-bad", ledger.lost + ledger.bad > 0);
  const kept = document.getElementById("kept");
  kept.hidden = !ledger.keptBack;
  if (ledger.keptBack) kept.textContent = said.kept_back.replace("{count}", whole.format(ledger.keptBack));
  const gateway = document.getElementById("gateway");
  gateway.className = `badge is-${ledger.up ? "active" : "disabled"}`;
  show("gateway", ledger.up ? said.up : said.down);
  show("clock", `${Math.floor(ledger.seconds / 60)}:${String(ledger.seconds % 60).padStart(2, "0")}`);
  document.getElementById("record").replaceChildren(...ledger.acts.map((act) => row([
    named(act), seconds(act.fault), act.state === "fault" ? "…" : seconds(act.recovery),
  ])));
  document.getElementById("nothing").hidden = ledger.acts.length > 0;
  document.getElementById("receivers").replaceChildren(...ledger.inboxes.map((inbox) => {
    const name = document.createElement("span");
    name.append(inbox.name, document.createElement("br"));
    const manner = document.createElement("span");
    manner.className = "faint small";
    manner.textContent = inbox.manner;
    name.append(manner);
    return row([name, whole.format(inbox.delivered), whole.format(inbox.waiting)]);
  }));
  draw(ledger.points);
  if (ledger.busy) asked = false;
  const current = ledger.busy ? ledger.acts[0] : null;
  for (const button of buttons) {
    button.disabled = ledger.busy || asked || !ledger.possible.includes(button.dataset.act);
    button.classList.toggle("is-on", current?.name === button.dataset.act);
  }
}

function trouble(text) {
  const part = document.getElementById("trouble");
  part.hidden = !text;
  if (text) part.textContent = text;
}

async function look() {
  try {
    const answer = await fetch("/ledger");
    fill(await answer.json());
    trouble("");
  } catch {
    trouble(said.gone);
  }
  setTimeout(look, LOOK);
}

for (const button of buttons) {
  button.addEventListener("click", async () => {
    asked = true;
    for (const each of buttons) each.disabled = true;
    const answer = await fetch(`/acts/${button.dataset.act}`, {
      method: "POST", body: "{}",
      headers: { "Content-Type": "application/json", "X-Demo-Token": document.body.dataset.token },
    }).catch(() => null);
    if (!answer?.ok) {
      asked = false;
      trouble(said.broken);
    }
  });
}
look();
