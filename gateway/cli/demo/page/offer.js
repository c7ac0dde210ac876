// The discount modal: a coupon for an email address, offered once in a tab.

import { ask, change } from "/api.js";
import { apply } from "/cart.js";
import { $, field, form, h, money, say } from "/dom.js";

export async function offer() {
  if (sessionStorage.getItem("offered")) return;
  const { discountModal: found } = await ask(
    "discountModal(hostname: $hostname) { id title discountPercentage discountValue validDays }");
  if (!found) return;
  sessionStorage.setItem("offered", "yes");
  const off = found.discountPercentage ? `${found.discountPercentage} %` : money(found.discountValue);
  const dialog = $("#offer");
  const close = h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "No, thanks");
  const request = form(found.title, async (values) => {
    const { couponCode } = await change("saveDiscountModalUserData", "couponCode success",
      { discountModalId: found.id, ...values });
    dialog.replaceChildren(h("h2", { id: "offer-title" }, "Here it is"),
      h("p", {}, "Your coupon is ", h("code", { "data-testid": "coupon" }, couponCode), "."),
      h("div", { class: "inline" },
        h("button", { type: "button", onclick: () => use(couponCode, dialog) }, "Put it into the cart"),
        h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, "Close")));
  },
  field("Name", { name: "name", autocomplete: "name" }),
  field("Email", { name: "email", type: "email", required: true, autocomplete: "email" }),
  h("div", { class: "inline" }, h("button", { type: "submit" }, "Get my coupon"), close));
  dialog.replaceChildren(h("h2", { id: "offer-title" }, found.title),
    h("p", {}, `${off} off your order, valid for ${found.validDays} days.`), request);
  dialog.addEventListener("close", () => dialog.replaceChildren(), { once: true });
  dialog.showModal();
}

async function use(code, dialog) {
  dialog.close();
  try {
    await apply(code);
  } catch (refused) {
    say(`${refused.message} Your code is ${code}.`, true);
  }
}
