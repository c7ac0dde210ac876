// The checkout and the page of an order.

import { ask, change } from "/api.js";
import { refresh, totals } from "/cart.js";
import { cepOf, date, field, form, h, money, say } from "/dom.js";
import { days, t } from "/words.js";

const METHODS = [["pix", t("Pix")], ["boleto", t("Boleto")], ["card", t("Card")]];
const STREET = ["street", "number", "complement", "district", "city", "state", "cep"];
const ORDER = `number status totalPrice totalDiscount totalShipping total email createdAt expiresAt paidAt canceledAt
  items { title price quantity } coupon { code } shipping { name deadline }
  address { name street number complement district city state cep } payment { method pixCode }`;

// A guest sees an order with the token of its checkout. The token stays in this tab.
const tokenOf = (number) => sessionStorage.getItem(`order ${number}`);

export async function checkout() {
  const found = await refresh();
  if (!found.products.length) return [h("h1", {}, t("Checkout")), h("p", {}, t("Your cart is empty."))];
  if (found.requiresShipping && found.totalShipping == null) {
    return [h("h1", {}, t("Checkout")), h("p", {}, t("Choose how to ship first. ")), h("a", { href: "#/cart" }, t("To the cart"))];
  }
  const { client } = await ask(`client(hostname: $hostname) { user { name email phone }
    addresses { street number complement district city state cep } }`);
  const user = client.user ?? {};
  const saved = client.addresses?.[0] ?? {};
  const needed = found.totalShipping != null;
  let agreed = found;
  const key = crypto.getRandomValues(new Uint32Array(4)).join("-");
  const address = [
    ["street", t("Street"), "address-line1"], ["number", t("Number")], ["complement", t("Complement")],
    ["district", t("District")], ["city", t("City"), "address-level2"], ["state", t("State"), "address-level1"],
    ["cep", "CEP", "postal-code"],
  ].map(([name, label, autocomplete]) => field(label, {
    name, autocomplete, required: needed && !["complement", "district"].includes(name),
    maxlength: name === "state" ? 2 : 200, value: name === "cep" ? cepOf(found.cep ?? saved.cep ?? "") : saved[name] }));

  const place = form(t("Checkout"), async (values) => {
    const sent = Object.fromEntries(Object.entries(values).filter(([name, text]) => text && !STREET.includes(name)));
    if (needed) sent.address = Object.fromEntries(STREET.filter((name) => values[name]).map((name) => [name, values[name]]));
    // The same key sends the same order when the response of the first request is lost.
    const made = await change("checkout", `order { number accessToken } warnings { message }`,
      { ...sent, expectedTotal: agreed.total, idempotencyKey: key }).catch((refused) => {
      // The cart changed meanwhile: show it, so that the next click orders what the buyer saw.
      if (refused.cart) agree(refused.cart);
      throw refused;
    });
    const { number, accessToken } = made.order;
    if (accessToken) sessionStorage.setItem(`order ${number}`, accessToken);
    await refresh();
    location.hash = `#/order/${number}`;
  },
  h("fieldset", {}, h("legend", {}, t("You")),
    field(t("Name"), { name: "name", required: true, autocomplete: "name", value: user.name }),
    field(t("Email"), { name: "email", type: "email", required: true, autocomplete: "email", value: user.email }),
    field(t("Phone"), { name: "phone", type: "tel", autocomplete: "tel", value: user.phone }),
    field(t("CPF or CNPJ"), { name: "document", autocomplete: "off" })),
  needed && h("fieldset", {}, h("legend", {}, t("Delivery")), address),
  h("fieldset", {}, h("legend", {}, t("Payment")),
    field(t("Method"), { name: "paymentMethod", options: METHODS, value: "pix" }),
    field(t("Notes"), { name: "notes", rows: 2 })),
  !needed && h("p", { class: "faint" }, t("There is nothing to ship.")),
  h("button", { type: "submit" }));
  const summary = h("section", { class: "box" });
  function agree(cart) {
    agreed = cart;
    place.querySelector("button").textContent = t("Place order for {total}", { total: money(cart.total) });
    summary.replaceChildren(h("h2", {}, t("Summary")),
      h("ul", {}, cart.products.map((line) => h("li", {}, `${line.quantity} × ${line.title}`))), totals(cart));
  }
  agree(found);
  return [h("h1", {}, t("Checkout")), h("div", { class: "columns" }, place, summary)];
}

export async function order(number) {
  const { order: found } = await ask(
    `order(hostname: $hostname, number: $number, accessToken: $accessToken) { ${ORDER} }`,
    "$number: String!, $accessToken: String", { number, accessToken: tokenOf(number) });
  if (!found) return [h("h1", {}, t("Order not found")), h("p", {}, t("Sign in to see your orders."))];
  const pending = found.status === "pending";
  return [
    h("h1", {}, t("Order {number}", { number: found.number })),
    h("p", {}, h("span", { class: `badge is-${found.status}`, "data-testid": "status" }, t(found.status)),
      t(" since {date}", { date: date(found.paidAt ?? found.canceledAt ?? found.createdAt) })),
    pending && payment(found),
    h("div", { class: "columns" },
      h("section", { class: "box" }, h("h2", {}, t("Products")),
        h("ul", {}, found.items.map((item) => h("li", {}, `${item.quantity} × ${item.title}, ${money(item.price)}`))),
        totals(found)),
      h("section", { class: "box" }, h("h2", {}, t("Delivery")), delivery(found))),
  ];
}

function delivery({ address, shipping }) {
  if (!address) return h("p", {}, t("There is nothing to ship."));
  return h("p", {}, [shipping && `${shipping.name}, ${days(shipping.deadline)}`,
    `${address.street}, ${address.number} ${address.complement ?? ""}`, address.district,
    `${address.city} ${address.state}, ${cepOf(address.cep)}`].filter(Boolean).flatMap((text) => [text, h("br")]));
}

function payment(found) {
  const reload = () => dispatchEvent(new Event("shop:reload"));
  const act = (work, text) => async (event) => {
    event.currentTarget.disabled = true;
    try {
      await work();
      say(text);
    } catch (refused) {
      say(refused.message, true);
    }
    reload();
  };
  const { method, pixCode } = found.payment ?? {};
  return h("section", { class: "box" }, h("h2", {}, t("Payment")),
    h("p", {}, t("{total} by {method}, until {date}.", { total: money(found.total), method: t(method), date: date(found.expiresAt) })),
    pixCode && h("p", {}, h("label", { for: "pix" }, t("Pix code")),
      h("textarea", { id: "pix", rows: 3, readonly: true, spellcheck: "false" }, pixCode)),
    h("div", { class: "inline" },
      h("button", { type: "button", onclick: act(() => pay(found.number), t("The payment has arrived.")) },
        t("Pay as the demo's bank")),
      h("button", { type: "button", class: "quiet", onclick: act(() => change("orderCancel", "order { status }",
        { number: found.number, accessToken: tokenOf(found.number) }), t("The order is canceled.")) }, t("Cancel order"))));
}

// The demo's own server plays the bank: it pays the invoice by the REST API of the CRM.
async function pay(number) {
  const response = await fetch("/pay", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ number }),
  });
  if (!response.ok) throw new Error(await response.text());
}
