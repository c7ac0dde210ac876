// The cart: lines, coupon and shipping. Every change returns the whole cart.

import { ask, change } from "/api.js";
import { $, cepOf, field, form, h, money, say } from "/dom.js";
import { days, t } from "/words.js";

export const CART = `id totalPrice totalQuantity totalDiscount totalShipping total cep shippingType requiresShipping
  products { id productId title price quantity available images { url alt } }
  coupon { code discountPercentage discountValue } shippingOptions { type name price deadline }`;

export async function refresh() {
  const { shoppingCart } = await ask(`shoppingCart(hostname: $hostname) { ${CART} }`);
  counted(shoppingCart);
  return shoppingCart;
}

const counted = (found) => { $("#cart-count").textContent = found.totalQuantity; };

async function run(name, input, text) {
  const payload = await change(name, `shoppingCart { ${CART} } warnings { code message }`, input);
  counted(payload.shoppingCart);
  const warnings = payload.warnings ?? [];
  say(warnings.length ? warnings.map((one) => one.message).join(" ") : text, warnings.length > 0);
  return payload.shoppingCart;
}

export async function add(productId, quantity) {
  try {
    await run("shoppingCartAddProduct", { productId, quantity }, t("Added to the cart."));
  } catch (refused) {
    say(refused.message, true);
  }
}

export async function apply(code) {
  await run("shoppingCartApplyCoupon", { code }, t("The coupon is in your cart."));
}

export async function cart() {
  const found = await refresh();
  const view = h("div", { class: "view" });
  draw(view, found);
  return [h("h1", {}, t("Your cart")), view];
}

// Names a control, so that the keyboard stays where it was when the cart is drawn anew.
const nameOf = (control) => control.getAttribute("aria-label")
  ?? [control.name, control.type === "radio" && control.value, control.textContent].join(" ");

function draw(view, found) {
  const held = view.contains(document.activeElement) && nameOf(document.activeElement);
  fill(view, found);
  if (!held) return;
  const again = [...view.querySelectorAll("button, input")].find((control) => nameOf(control) === held);
  (again ?? $("#main")).focus();
}

function fill(view, found) {
  const act = async (name, input, text) => draw(view, await run(name, input, text));
  const safely = (name, input, text) =>
    act(name, input, text).catch((refused) => say(refused.message, true));
  if (!found.products.length) {
    view.replaceChildren(h("p", {}, t("It is empty. ")), h("a", { href: "#/" }, t("See the products")));
    return;
  }
  view.replaceChildren(
    h("ul", { class: "lines" }, found.products.map((line) => row(line, safely))),
    h("div", { class: "columns" }, coupon(found, act, safely), shipping(found, act, safely)),
    totals(found),
    h("p", {}, h("a", { class: "button", href: "#/checkout" }, t("Go to checkout"))));
}

function row(line, safely) {
  const [image] = line.images;
  return h("li", {},
    image && h("img", { src: image.url, alt: "", width: 96, height: 72 }),
    h("div", { class: "grow" }, h("strong", {}, line.title),
      h("p", { class: "faint" }, t("{price} each", { price: money(line.price) }), !line.available && t(", not available"))),
    h("input", { type: "number", min: 0, max: 999, value: line.quantity, "aria-label": t("Quantity of {title}", { title: line.title }),
      onchange: (event) => safely("shoppingCartUpdateProduct",
        { id: line.id, quantity: Number(event.target.value) }, t("Changed.")) }),
    h("strong", { class: "amount" }, money(line.price * line.quantity)),
    h("button", { type: "button", class: "quiet", "aria-label": t("Remove {title}", { title: line.title }),
      onclick: () => safely("shoppingCartRemoveProduct", { id: line.id }, t("Removed.")) }, t("Remove")));
}

function coupon(found, act, safely) {
  if (found.coupon) {
    const { code, discountPercentage, discountValue } = found.coupon;
    const off = discountPercentage ? `${discountPercentage} %` : money(discountValue);
    return h("section", { class: "box" }, h("h2", {}, t("Coupon")), h("p", {}, h("code", {}, code), t(" takes {off} off.", { off })),
      h("button", { type: "button", class: "quiet",
        onclick: () => safely("shoppingCartRemoveCoupon", {}, t("The coupon is removed.")) }, t("Remove coupon")));
  }
  return h("section", { class: "box" }, h("h2", {}, t("Coupon")),
    form(t("Coupon"), ({ code }) => act("shoppingCartApplyCoupon", { code }, t("The coupon is in your cart.")),
      field(t("Code"), { name: "code", required: true, autocomplete: "off", hint: t("Try WELCOME10.") }),
      h("button", { type: "submit", class: "quiet" }, t("Apply coupon"))));
}

function shipping(found, act, safely) {
  const options = found.shippingOptions.map((one) => h("label", { class: "option" },
    h("input", { type: "radio", name: "type", value: one.type, checked: one.type === found.shippingType,
      onchange: () => safely("shoppingCartSetShipping", { cep: found.cep, type: one.type }, t("Shipping is chosen.")) }),
    h("span", { class: "grow" }, `${one.name}, ${days(one.deadline)}`),
    h("strong", {}, one.price ? money(one.price) : t("free"))));
  if (!found.requiresShipping) {
    return h("section", { class: "box" }, h("h2", {}, t("Shipping")), h("p", {}, t("There is nothing to ship.")));
  }
  return h("section", { class: "box" }, h("h2", {}, t("Shipping")),
    form(t("Shipping"), ({ cep }) => act("shoppingCartSetShipping", { cep }, t("Choose how to ship.")),
      field("CEP", { name: "cep", required: true, inputmode: "numeric", autocomplete: "postal-code",
        value: cepOf(found.cep ?? ""), hint: t("Eight digits, such as 01310-100.") }),
      h("button", { type: "submit", class: "quiet" }, t("Find shipping"))),
    options.length > 0 && h("fieldset", {}, h("legend", {}, t("Ways to ship")), options),
    found.cep && !options.length && h("p", {}, t("The shop does not ship to this CEP.")));
}

export function totals(found) {
  const line = (name, amount) => [h("dt", {}, name), h("dd", {}, amount)];
  return h("dl", { class: "totals" },
    line(t("Products"), money(found.totalPrice)),
    found.totalDiscount > 0 && line(t("Discount"), `− ${money(found.totalDiscount)}`),
    found.totalShipping != null && line(t("Shipping"), found.totalShipping ? money(found.totalShipping) : t("free")),
    line("Total", h("strong", { "data-testid": "total" }, money(found.total))));
}
