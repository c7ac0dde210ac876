// The discount modal: a coupon for an email address, offered once in a tab.

import { ask, change } from "/api.js";
import { apply } from "/cart.js";
import { $, field, form, h, money, say } from "/dom.js";
import { t } from "/words.js";

export async function offer() {
  if (sessionStorage.getItem("offered")) return;
  const { discountModal: found } = await ask(
    "discountModal(hostname: $hostname) { id title discountPercentage discountValue validDays }");
  if (!found) return;
  sessionStorage.setItem("offered", "yes");
  const off = found.discountPercentage ? `${found.discountPercentage} %` : money(found.discountValue);
  const dialog = $("#offer");
  const close = h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, t("No, thanks"));
  const request = form(found.title, async (values) => {
    const { couponCode } = await change("saveDiscountModalUserData", "couponCode success",
      { discountModalId: found.id, ...values });
    dialog.replaceChildren(h("h2", { id: "offer-title" }, t("Here it is")),
      h("p", {}, t("Your coupon is "), h("code", { "data-testid": "coupon" }, couponCode), "."),
      h("div", { class: "inline" },
        h("button", { type: "button", onclick: () => use(couponCode, dialog) }, t("Put it into the cart")),
        h("button", { type: "button", class: "quiet", onclick: () => dialog.close() }, t("Close"))));
  },
  field(t("Name"), { name: "name", autocomplete: "name" }),
  field(t("Email"), { name: "email", type: "email", required: true, autocomplete: "email" }),
  h("div", { class: "inline" }, h("button", { type: "submit" }, t("Get my coupon")), close));
  dialog.replaceChildren(h("h2", { id: "offer-title" }, found.title),
    h("p", {}, t("{off} off your order, valid for {days} days.", { off, days: found.validDays })), request);
  dialog.addEventListener("close", () => dialog.replaceChildren(), { once: true });
  dialog.showModal();
}

async function use(code, dialog) {
  dialog.close();
  try {
    await apply(code);
  } catch (refused) {
    say(t("{message} Your code is {code}.", { message: refused.message, code }), true);
  }
}
