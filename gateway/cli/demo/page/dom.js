// Builds elements, always from text and never from markup, and tells the visitor what happened.

import { Refused } from "/api.js";

export const $ = (selector) => document.querySelector(selector);

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child != null && child !== false));
  return element;
}

const real = new Intl.NumberFormat("pt-BR", { style: "currency", currency: "BRL" });
const day = new Intl.DateTimeFormat(document.documentElement.lang === "pt-BR" ? "pt-BR" : "en-GB", { dateStyle: "medium", timeStyle: "short" });
export const money = (centavos) => real.format(centavos / 100);
export const date = (text) => day.format(new Date(text));

export const cepOf = (digits) => digits.replace(/^(\d{5})(\d{3})$/, "$1-$2");

export function say(text, wrong = false) {
  const notice = $("#notice");
  notice.textContent = text;
  notice.classList.toggle("wrong", wrong);
}

let fields = 0;

// A labelled field; the rest of `props` goes to the input.
export function field(label, { options, value, hint, ...props }) {
  const id = `field-${(fields += 1)}`;
  const input = options
    ? h("select", { id, ...props }, options.map(([key, text]) =>
        h("option", { value: key, selected: key === value }, text)))
    : h(props.rows ? "textarea" : "input", { id, value: props.rows ? null : value, ...props });
  const wrong = h("span", { class: "wrong", id: `${id}-wrong`, hidden: true });
  input.setAttribute("aria-describedby", wrong.id);
  return h("p", { class: "field" }, h("label", { for: id }, label), input,
    hint && h("small", {}, hint), wrong);
}

// A form whose action gets its values; a refusal is shown at its field, or else as the notice.
export function form(label, action, ...children) {
  const act = async (event) => {
    event.preventDefault();
    const target = event.currentTarget;
    const button = target.querySelector("button[type=submit]");
    for (const wrong of target.querySelectorAll("span.wrong")) wrong.hidden = true;
    for (const input of target.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
    button.disabled = true;
    try {
      await action(Object.fromEntries(new FormData(target)), target);
    } catch (refused) {
      if (!(refused instanceof Refused)) throw refused;
      refuse(target, refused);
    } finally {
      button.disabled = false;
    }
  };
  return h("form", { onsubmit: act, "aria-label": label }, ...children);
}

function refuse(target, refused) {
  const name = refused.field?.replace(/^address\./, "");
  const input = name && target.querySelector(`[name="${CSS.escape(name)}"]`);
  const place = input && document.getElementById(input.getAttribute("aria-describedby"));
  if (!place) return say(refused.message, true);
  place.textContent = refused.message;
  place.hidden = false;
  input.setAttribute("aria-invalid", "true");
  input.focus();
}
