// Sign-in, sign-up, and the account with its orders.

import { ask, change } from "/api.js";
import { refresh } from "/cart.js";
import { date, field, form, h, money, say } from "/dom.js";
import { t } from "/words.js";

const email = () => field(t("Email"), { name: "email", type: "email", required: true, autocomplete: "email" });
const password = (name) => field(t("Password"),
  { name: "password", type: "password", required: true, minlength: 6, maxlength: 128, autocomplete: name });

async function changed(text) {
  dispatchEvent(new Event("shop:client"));
  await refresh();
  say(text);
  dispatchEvent(new Event("shop:reload"));
}

export async function account() {
  const { client } = await ask("client(hostname: $hostname) { user { name email } }");
  if (client.user) return signedIn(client.user);
  const signIn = form(t("Sign in"), async (values) => {
    await change("clientLogin", "user { name }", values);
    await changed(t("You are signed in."));
  }, email(), password("current-password"), h("button", { type: "submit" }, t("Sign in")));
  const signUp = form(t("Create an account"), async (values) => {
    await change("clientSignup", "user { name }", values);
    await changed(t("Welcome! Your account is ready."));
  }, field(t("Full name"), { name: "name", required: true, autocomplete: "name" }), email(),
  password("new-password"), h("button", { type: "submit" }, t("Create account")));
  return [h("h1", {}, t("Your account")), h("div", { class: "columns" },
    h("section", { class: "box" }, h("h2", {}, t("Sign in")), signIn),
    h("section", { class: "box" }, h("h2", {}, t("New here?")), signUp))];
}

async function signedIn(user) {
  const { orders } = await ask(`orders(hostname: $hostname, first: 50) {
    nodes { number status total createdAt } }`);
  const leave = form(t("Sign out"), async () => {
    await change("clientLogout", "success");
    await changed(t("You are signed out."));
  }, h("button", { type: "submit", class: "quiet" }, t("Sign out")));
  return [h("h1", {}, t("Hello, {name}", { name: user.name })), h("p", {}, user.email), leave,
    h("section", {}, h("h2", {}, t("Your orders")), orders.nodes.length
      ? h("ul", { class: "lines" }, orders.nodes.map((one) => h("li", {},
        h("a", { class: "grow", href: `#/order/${one.number}` }, one.number),
        h("span", { class: "faint" }, date(one.createdAt)), h("span", { class: `badge is-${one.status}` }, t(one.status)),
        h("strong", { class: "amount" }, money(one.total)))))
      : h("p", { class: "faint" }, t("None yet.")))];
}
