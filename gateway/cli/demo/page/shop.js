// Starts the shop: shows the view of the address, and keeps the header current.

import { ask, change } from "/api.js";
import { $, h, say } from "/dom.js";
import { account } from "/account.js";
import { cart, refresh } from "/cart.js";
import { checkout, order } from "/order.js";
import { list, product } from "/catalogue.js";
import { offer } from "/offer.js";
import { t } from "/words.js";

const VIEWS = [
  [/^#\/product\/(.+)$/, product],
  [/^#\/cart$/, cart],
  [/^#\/checkout$/, checkout],
  [/^#\/order\/(.+)$/, order],
  [/^#\/account$/, account],
  [/^(?:#\/)?$/, list],
];
let latest = 0;

async function show() {
  const address = location.hash;
  if (address === "#main") return;
  const turn = (latest += 1);
  const [match, view] = VIEWS.map(([pattern, view]) => [address.match(pattern), view])
    .find(([found]) => found) ?? [[], missing];
  let content;
  try {
    content = await view(...match.slice(1).map(decodeURIComponent));
  } catch (refused) {
    content = [h("h1", {}, t("That did not work")), h("p", {}, refused.message)];
  }
  // A slower view of an earlier address must not replace this one.
  if (turn !== latest) return;
  const main = $("#main");
  main.replaceChildren(...content.flat().filter(Boolean));
  const heading = main.querySelector("h1");
  document.title = `${heading.textContent} · ${$("#store").textContent}`;
  if (turn > 1) {
    heading.tabIndex = -1;
    heading.focus();
    scrollTo(0, 0);
  }
}

const missing = () => [h("h1", {}, t("There is no such page")), h("a", { href: "#/" }, t("All products"))];

addEventListener("hashchange", () => { say(""); show(); });
addEventListener("shop:reload", show);

$("#newsletter").addEventListener("submit", async (event) => {
  event.preventDefault();
  const email = new FormData(event.target).get("email");
  try {
    await change("lead", "success", { email, source: "newsletter" });
    event.target.reset();
    say(t("Thank you, you are on the list."));
  } catch (refused) {
    say(refused.message, true);
  }
});

async function greet() {
  const { client } = await ask("client(hostname: $hostname) { store { name } user { name } }");
  $("#store").textContent = client.store.name;
  $("#account-link").textContent = client.user ? client.user.name.split(" ")[0] : t("Sign in");
}

const safely = (work) => work().catch((refused) => say(refused.message, true));
addEventListener("shop:client", () => safely(greet));

for (const element of document.querySelectorAll("[data-t]")) element.textContent = t(element.textContent);
for (const element of document.querySelectorAll("[data-t-label]")) element.ariaLabel = t(element.ariaLabel);
await show();
await safely(greet);
await safely(refresh);
await safely(offer);
