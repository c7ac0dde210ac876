// Calls the storefront API. Cookies carry the session and the cart, so credentials are included.

import { t } from "/words.js";

const { api, hostname } = document.documentElement.dataset;

export class Refused extends Error {
  constructor(error) {
    const field = error.extensions?.field;
    super(error.message.replace(`${field}: `, ""));
    this.code = error.extensions?.code;
    this.field = field;
    this.cart = error.extensions?.shoppingCart;
  }
}

async function send(query, variables) {
  let response;
  try {
    response = await fetch(`${api}/graphql`, {
      method: "POST",
      credentials: "include",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ query, variables }),
    });
  } catch {
    throw new Refused({ message: t("The shop cannot be reached. Try again in a moment.") });
  }
  const body = await response.json();
  if (body.errors) throw new Refused(body.errors[0]);
  if (!response.ok) throw new Refused({ message: body.error ?? `Status ${response.status}` });
  return body.data;
}

// Runs a query; `$hostname` is declared, `declared` adds further variables: "$slug: String!".
export const ask = (selection, declared = "", variables = {}) =>
  send(`query ($hostname: String! ${declared}) { ${selection} }`, { hostname, ...variables });

// Runs a mutation and returns its payload.
export async function change(name, selection, input = {}) {
  const kind = name[0].toUpperCase() + name.slice(1);
  const query = `mutation ($input: ${kind}MutationInput!) { ${name}(input: $input) { ${selection} } }`;
  const data = await send(query, { input: { hostname, ...input } });
  return data[name];
}
