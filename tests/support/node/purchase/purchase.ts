// A whole purchase with the generated client: node purchase.js ORIGIN HOSTNAME COUPON
import { type DocumentNode, print } from "graphql";
import { getSdk } from "./client.js";

declare const process: { argv: string[] };

const [origin, hostname, code] = process.argv.slice(2) as [string, string, string];
const cookies = new Map<string, string>();

const client = getSdk(async <R, V>(document: DocumentNode, variables?: V): Promise<R> => {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const response = await fetch(`${origin}/graphql`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(cookie && { Cookie: cookie }) },
    body: JSON.stringify({ query: print(document), variables }),
  });
  for (const line of response.headers.getSetCookie()) {
    const [name, value] = line.split(";")[0]!.split("=") as [string, string];
    cookies.set(name, value);
  }
  const answer = (await response.json()) as { data?: R; errors?: { message: string }[] };
  if (answer.errors || !answer.data) throw new Error(JSON.stringify(answer.errors));
  return answer.data;
});

function must<T>(value: T | null | undefined, what: string): T {
  if (value === null || value === undefined) throw new Error(`no ${what}`);
  return value;
}

const shelf = must((await client.ListProducts({ hostname })).products, "products");
const product = must(shelf.nodes[0], "product");
await client.ShoppingCartAddProduct({ input: { hostname, productId: product.id, quantity: 2 } });
await client.ShoppingCartApplyCoupon({ input: { hostname, code } });
await client.ShoppingCartSetShipping({ input: { hostname, cep: "01310-200", type: "express" } });
const cart = must((await client.GetShoppingCart({ hostname })).shoppingCart, "cart");
const done = await client.Checkout({
  input: {
    hostname,
    email: "maria@example.com",
    name: "Maria da Silva",
    expectedTotal: cart.total,
    address: {
      street: "Avenida Paulista",
      number: "1578",
      city: "São Paulo",
      state: "SP",
      cep: "01310-200",
    },
  },
});
const order = must(done.checkout?.order, "order");
const number: string = order.number;
const accessToken: string = must(order.accessToken, "token");
const seen = must((await client.GetOrder({ hostname, number, accessToken })).order, "order");
const total: number = seen.total;
console.log(
  JSON.stringify({
    number,
    total,
    cart: cart.total,
    status: seen.status,
    pixCode: done.checkout?.payment?.pixCode,
  }),
);
