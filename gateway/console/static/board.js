// The board of deals: moves cards by mouse and by keyboard. Without it each card has a page for that.
"use strict";

const board = document.getElementById("board");
const dialog = document.getElementById("move-dialog");
const said = document.getElementById("board-said");
const targets = [...document.querySelectorAll("[data-target]")];
let lifted = null;

function say(text, values = {}, bad = false) {
  said.textContent = text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
  said.classList.toggle("bad", bad);
}

const titleOf = (card) => card.querySelector(".title").textContent;
const laneOf = (stage) => targets.find((target) => target.dataset.target === `stage:${stage}`);

function mark(target) {
  for (const one of targets) one.classList.toggle("over", one === target);
  target?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

// Newest first, as the server lists them; a card behind the last one shown goes to the end.
function place(card, lane) {
  const list = lane.querySelector("ul");
  const newer = (other) => Number(other.dataset.created) < Number(card.dataset.created);
  const next = [...list.querySelectorAll(".deal")].find(newer);
  list.insertBefore(card, next ?? list.querySelector(".further"));
}

// Sends a move; the card stands at its new place meanwhile, and goes back when it is refused.
async function move(card, target, fields) {
  const { id, version, stage } = card.dataset;
  const lane = target.classList.contains("lane");
  const here = card.contains(document.activeElement);
  const mark = document.createComment("");
  card.replaceWith(mark);
  if (lane) place(card, target);
  const body = new URLSearchParams({ csrf_token: dialog.querySelector("[name=csrf_token]").value });
  for (const [name, value] of Object.entries({ version, from: stage, ...fields })) body.set(name, value);
  let reply;
  try {
    const answer = await fetch(`/console/deals/${id}/move`, { method: "POST", body, headers: { "HX-Request": "true" } });
    if (answer.headers.has("HX-Redirect")) return location.assign(answer.headers.get("HX-Redirect"));
    reply = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("moved");
    if (answer.status === 404) {
      card.remove();
      return say(board.dataset.gone, { title: titleOf(card) }, true);
    }
  } catch {
    reply = null;
  }
  const values = { title: titleOf(card), target: target.dataset.name };
  if (!reply) {
    mark.replaceWith(card);
    if (here) card.querySelector(".title").focus();
    return say(board.dataset.failed, values, true);
  }
  for (const one of reply.querySelectorAll("[data-of]")) {
    for (const old of document.querySelectorAll("[data-of]")) {
      if (old.dataset.of === one.dataset.of) old.replaceWith(one.cloneNode(true));
    }
  }
  const fresh = reply.querySelector(".deal");
  const home = fresh && laneOf(fresh.dataset.stage);
  if (!home) {
    card.remove();
    mark.remove();
    if (here) board.focus();
  } else {
    if (home.contains(mark)) mark.replaceWith(fresh);
    else place(fresh, home);
    card.remove();
    mark.remove();
    if (here) fresh.querySelector(".title").focus();
  }
  if (reply.dataset.said) say(reply.dataset.said, {}, true);
  else say(board.dataset.moved, values);
}

function drop(card, target) {
  mark(null);
  const to = target.dataset.target;
  if (to === "lost") return ask(card, true);
  if (to === "won") return move(card, target, { act: "won" });
  const stage = to.slice("stage:".length);
  if (stage !== card.dataset.stage) return move(card, target, { act: "move", stage });
}

// Asks where to, or for the reason of a loss.
function ask(card, losing) {
  const form = dialog.querySelector("form");
  form.reset();
  form.action = `/console/deals/${card.dataset.id}/move`;
  form.elements.version.value = card.dataset.version;
  form.elements.from.value = card.dataset.stage;
  form.elements.stage.value = card.dataset.stage;
  const heading = dialog.querySelector("#move-title");
  heading.textContent = heading.dataset.title.replace("{title}", titleOf(card));
  dialog.card = card;
  dialog.showModal();
  form.elements[losing ? "lostReason" : "stage"].focus();
}

dialog.addEventListener("click", (event) => {
  if (event.target === dialog || event.target.closest("[data-close]")) dialog.close();
});

// The browser gives the focus back to what had it before the dialog was there.
dialog.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const { stage, lostReason } = event.target.elements;
  // Enter in the reason means that button, not the first one.
  const reason = document.activeElement === lostReason;
  const act = reason ? "lost" : event.submitter?.value || "move";
  const card = dialog.card;
  dialog.close();
  const to = act === "move" ? laneOf(stage.value) : targets.find((one) => one.dataset.target === act);
  // A column of another page of the board has no place here.
  if (!to) return HTMLFormElement.prototype.submit.call(withAct(event.target, act));
  if (act === "move" && stage.value === card.dataset.stage) return;
  move(card, to, { act, stage: stage.value, lostReason: lostReason.value });
});

function withAct(form, act) {
  const input = document.createElement("input");
  Object.assign(input, { type: "hidden", name: "act", value: act });
  form.append(input);
  return form;
}

board.addEventListener("click", (event) => {
  const link = event.target.closest(".move");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  ask(link.closest(".deal"), false);
});

// What was said has been read when the next thing begins.
document.addEventListener("pointerdown", () => say(""));

// By mouse.
let dragged = null;
board.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.(".deal");
  if (!dragged) return;
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", dragged.id);
  board.classList.add("moving");
  dragged.classList.add("lifted");
});
document.addEventListener("dragend", () => {
  dragged?.classList.remove("lifted");
  board.classList.remove("moving");
  dragged = null;
  mark(null);
});
for (const target of targets) {
  target.addEventListener("dragover", (event) => {
    if (!dragged) return;
    event.preventDefault();
    for (const one of targets) one.classList.toggle("over", one === target);
  });
  target.addEventListener("drop", (event) => {
    if (!dragged) return;
    event.preventDefault();
    const card = dragged;
    card.classList.remove("lifted");
    drop(card, target);
  });
}

// By keyboard: up and down choose a card; left and right its target, Enter drops it there.
function down(card) {
  card?.classList.remove("lifted");
  lifted = null;
  mark(null);
}

board.addEventListener("keydown", (event) => {
  const card = event.target.closest(".deal");
  if (!card || event.ctrlKey || event.metaKey || event.altKey) return;
  const { key } = event;
  if (key === "ArrowUp" || key === "ArrowDown") {
    const cards = [...card.parentElement.querySelectorAll(".deal")];
    const next = cards[cards.indexOf(card) + (key === "ArrowUp" ? -1 : 1)];
    event.preventDefault();
    next?.querySelector(".title").focus();
  } else if (key === "ArrowLeft" || key === "ArrowRight") {
    event.preventDefault();
    const order = [...targets.filter((one) => one.classList.contains("lane")), ...targets.filter((one) => !one.classList.contains("lane"))];
    const home = card.closest(".lane");
    const at = order.indexOf(lifted?.target ?? home) + (key === "ArrowLeft" ? -1 : 1);
    const target = order[Math.max(0, Math.min(order.length - 1, at))];
    card.classList.add("lifted");
    lifted = { card, target };
    mark(target);
    const values = { title: titleOf(card), target: target.dataset.name, place: order.indexOf(target) + 1, count: order.length };
    say(target === home ? board.dataset.home : board.dataset.over, values);
  } else if (key === "Enter" && lifted?.card === card) {
    event.preventDefault();
    const { target } = lifted;
    down(card);
    drop(card, target);
  } else if (key === "Escape" && lifted) {
    down(card);
    say(board.dataset.canceled, { title: titleOf(card) });
  }
});
board.addEventListener("focusout", () => {
  if (lifted) down(lifted.card);
});
