// The list of products and the page of one product.

import { ask, change } from "/api.js";
import { add } from "/cart.js";
import { date, field, form, h, money, say } from "/dom.js";

const CARD = "id title slug price compareAtPrice available images { url alt }";
const LIST = `products(hostname: $hostname, first: 8, after: $after, category: $category,
  search: $search, orderBy: $orderBy) { nodes { ${CARD} } pageInfo { hasNextPage endCursor } totalCount }`;
const DECLARED = "$after: String, $category: String, $search: String, $orderBy: ProductOrder";
const ORDERS = [["NEWEST", "Newest"], ["TITLE", "Name"], ["PRICE_ASC", "Lowest price"], ["PRICE_DESC", "Highest price"]];
let wanted = {};

export async function list() {
  const { categories } = await ask("categories(hostname: $hostname) { name slug parent { name } }");
  const cards = h("ul", { class: "cards" });
  const more = h("button", { type: "button", class: "quiet", onclick: () => load(true) }, "Show more");
  const found = h("p", { class: "faint", "aria-live": "polite" });
  let after = null;

  async function load(further) {
    const { products } = await ask(LIST, DECLARED, { ...wanted, after: further ? after : null });
    if (!further) cards.replaceChildren();
    cards.append(...products.nodes.map(card));
    after = products.pageInfo.endCursor;
    more.hidden = !products.pageInfo.hasNextPage;
    const count = products.totalCount;
    found.textContent = count === 1 ? "1 product" : `${count} products`;
  }

  const filter = form("Filter", async (values) => {
    // Without an order, a search has its best match first.
    const orderBy = values.orderBy === "NEWEST" ? null : values.orderBy;
    wanted = { search: values.search || null, category: values.category || null, orderBy };
    await load(false);
  },
  field("Search", { name: "search", type: "search", value: wanted.search ?? "" }),
  field("Category", { name: "category", value: wanted.category ?? "",
    options: [["", "All"], ...categories.map((one) =>
      [one.slug, one.parent ? `${one.parent.name}: ${one.name}` : one.name])] }),
  field("Order", { name: "orderBy", value: wanted.orderBy ?? "NEWEST", options: ORDERS }),
  h("button", { type: "submit" }, "Show"));
  filter.className = "filter";
  filter.addEventListener("change", (event) => {
    if (event.target.tagName === "SELECT") filter.requestSubmit();
  });
  await load(false);
  return [h("h1", {}, "Products"), filter, found, cards, more];
}

function card(one) {
  return h("li", { class: "card" },
    h("a", { href: `#/product/${one.slug}`, class: "plain" }, picture(one), h("h2", {}, one.title)),
    price(one), buy(one));
}

const picture = (one) => {
  const [image] = one.images;
  return image
    ? h("img", { src: image.url, alt: image.alt ?? "", width: 400, height: 300, loading: "lazy" })
    : h("div", { class: "blank" });
};

const price = (one) => h("p", { class: "price" }, money(one.price),
  one.compareAtPrice > one.price && h("s", { "aria-label": `before ${money(one.compareAtPrice)}` },
    money(one.compareAtPrice)));

const buy = (one) => one.available
  ? h("button", { type: "button", onclick: () => add(one.id, 1), "aria-label": `Add ${one.title} to the cart` },
    "Add to cart")
  : h("p", { class: "badge" }, "Sold out");

export async function product(slug) {
  const { product: one, client } = await ask(
    `product(hostname: $hostname, slug: $slug) { ${CARD} description stock categories { name }
       averageStars reviewsCount reviews(first: 10) { nodes { id stars text author createdAt } } }
     client(hostname: $hostname) { user { id } }`, "$slug: String!", { slug });
  if (!one) return [h("h1", {}, "This product is not on sale"), h("a", { href: "#/" }, "All products")];
  const choose = form("Add to cart", (values) => add(one.id, Number(values.quantity)),
    field("Quantity", { name: "quantity", type: "number", min: 1, max: 999, value: 1, required: true }),
    h("button", { type: "submit" }, "Add to cart"));
  choose.className = "inline";
  return [
    h("article", { class: "product" }, picture(one),
      h("div", {}, h("h1", {}, one.title), stars(one), price(one), h("p", {}, one.description ?? ""),
        h("p", { class: "faint" }, one.categories.map((group) => group.name).join(" · ")),
        one.stock != null && one.stock > 0 && h("p", { class: "faint" }, `${one.stock} in stock`),
        one.available ? choose : h("p", { class: "badge" }, "Sold out"))),
    reviews(one, client.user),
  ];
}

const stars = (one) => one.reviewsCount > 0 && h("p", { class: "stars" },
  h("span", { "aria-hidden": "true" }, "★".repeat(Math.round(one.averageStars))),
  ` ${one.averageStars.toFixed(1)} of 5, ${one.reviewsCount} ${one.reviewsCount === 1 ? "review" : "reviews"}`);

function reviews(one, user) {
  const written = one.reviews.nodes.map((review) => h("li", {},
    h("p", { class: "stars" }, h("span", { role: "img", "aria-label": `${review.stars} of 5 stars` },
      "★".repeat(review.stars))),
    h("p", {}, review.text), h("p", { class: "faint" }, `${review.author ?? "Customer"}, ${date(review.createdAt)}`)));
  const write = form("Write a review", async (values) => {
    await change("createReview", "review { id }",
      { productId: one.id, stars: Number(values.stars), text: values.text });
    say("Thank you for your review.");
    dispatchEvent(new Event("shop:reload"));
  },
  field("Stars", { name: "stars", options: [5, 4, 3, 2, 1].map((n) => [String(n), String(n)]), value: "5" }),
  field("Your review", { name: "text", rows: 3, required: true, maxlength: 5000 }),
  h("button", { type: "submit", class: "quiet" }, "Publish review"));
  return h("section", { class: "reviews" }, h("h2", {}, "Reviews"),
    written.length ? h("ul", {}, written) : h("p", { class: "faint" }, "No reviews yet."),
    user ? write : h("p", {}, h("a", { href: "#/account" }, "Sign in"), " to write a review."));
}
