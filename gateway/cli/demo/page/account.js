// Sign-in, sign-up, and the account with its orders.

import { ask, change } from "/api.js";
import { refresh } from "/cart.js";
import { date, field, form, h, money, say } from "/dom.js";

const email = () => field("Email", { name: "email", type: "email", required: true, autocomplete: "email" });
const password = (name) => field("Password",
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
  const signIn = form("Sign in", async (values) => {
    await change("clientLogin", "user { name }", values);
    await changed("You are signed in.");
  }, email(), password("current-password"), h("button", { type: "submit" }, "Sign in"));
  const signUp = form("Create an account", async (values) => {
    await change("clientSignup", "user { name }", values);
    await changed("Welcome! Your account is ready.");
  }, field("Full name", { name: "name", required: true, autocomplete: "name" }), email(),
  password("new-password"), h("button", { type: "submit" }, "Create account"));
  return [h("h1", {}, "Your account"), h("div", { class: "columns" },
    h("section", { class: "box" }, h("h2", {}, "Sign in"), signIn),
    h("section", { class: "box" }, h("h2", {}, "New here?"), signUp))];
}

async function signedIn(user) {
  const { orders } = await ask(`orders(hostname: $hostname, first: 50) {
    nodes { number status total createdAt } }`);
  const leave = form("Sign out", async () => {
    await change("clientLogout", "success");
    await changed("You are signed out.");
  }, h("button", { type: "submit", class: "quiet" }, "Sign out"));
  return [h("h1", {}, `Hello, ${user.name}`), h("p", {}, user.email), leave,
    h("section", {}, h("h2", {}, "Your orders"), orders.nodes.length
      ? h("ul", { class: "lines" }, orders.nodes.map((one) => h("li", {},
        h("a", { class: "grow", href: `#/order/${one.number}` }, one.number),
        h("span", { class: "faint" }, date(one.createdAt)), h("span", { class: `badge is-${one.status}` }, one.status),
        h("strong", { class: "amount" }, money(one.total)))))
      : h("p", { class: "faint" }, "None yet."))];
}
