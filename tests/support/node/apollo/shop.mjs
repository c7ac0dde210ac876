// Buys with Apollo Client: node shop.mjs ORIGIN HOSTNAME DOCUMENTS (the page's documents as a JSON file)
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client/core";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";

const [origin, hostname, file] = process.argv.slice(2);
const documents = JSON.parse(readFileSync(file, "utf8"));
const cookies = new Map();
const sent = [];

async function withCookies(url, options) {
  const body = JSON.parse(options.body);
  sent.push(body.query ? "document" : "hash");
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const headers = { ...options.headers, ...(cookie && { Cookie: cookie }) };
  const response = await fetch(url, { ...options, headers });
  for (const line of response.headers.getSetCookie()) {
    const [name, value] = line.split(";")[0].split("=");
    cookies.set(name, value);
  }
  return response;
}

const client = new ApolloClient({
  cache: new InMemoryCache(),
  link: ApolloLink.from([
    new PersistedQueryLink({ sha256: (text) => createHash("sha256").update(text).digest("hex") }),
    new HttpLink({ uri: `${origin}/graphql`, fetch: withCookies }),
  ]),
});
const of = (name) => gql(documents[name]);
for (const name of Object.keys(documents)) of(name);

const variables = { hostname };
const { data: shelf } = await client.query({ query: of("ListProducts"), variables });
const [product] = shelf.products.nodes;
const input = { hostname, productId: product.id, quantity: 2 };
await client.mutate({ mutation: of("ShoppingCartAddProduct"), variables: { input } });
const { data } = await client.query({ query: of("GetShoppingCart"), variables });
const buyer = { hostname, email: "maria@example.com", name: "Maria da Silva" };
const done = await client.mutate({ mutation: of("Checkout"), variables: { input: buyer } });
const { number, accessToken, total } = done.data.checkout.order;
const seen = await client.query({
  query: of("GetOrder"),
  variables: { hostname, number, accessToken },
});
console.log(
  JSON.stringify({
    title: product.title, cart: data.shoppingCart.totalPrice, number, total,
    status: seen.data.order.status, sent: sent.slice(0, 3), later: [...new Set(sent.slice(3))],
  }),
);
