// The list of products and the page of one product.

import { ask, change } from "/api.js";
import { add } from "/cart.js";
import { date, field, form, h, money, say } from "/dom.js";
import { number, t } from "/words.js";

const CARD = "id title slug price compareAtPrice available images { url alt }";
const LIST = `products(hostname: $hostname, first: 8, after: $after, category: $category,
  search: $search, orderBy: $orderBy) { nodes { ${CARD} } pageInfo { hasNextPage endCursor } totalCount }`;
const DECLARED = "$after: String, $category: String, $search: String, $orderBy: ProductOrder";
const ORDERS = [["NEWEST", t("Newest")], ["TITLE", t("Name")], ["PRICE_ASC", t("Lowest price")], ["PRICE_DESC", t("Highest price")]];
let wanted = {};

export async function list() {
  const { categories } = await ask("categories(hostname: $hostname) { name slug parent { name } }");
  const cards = h("ul", { class: "cards" });
  const more = h("button", { type: "button", class: "quiet", onclick: () => load(true) }, t("Show more"));
  const found = h("p", { class: "faint", "aria-live": "polite" });
  let after = null;

  async function load(further) {
    const { products } = await ask(LIST, DECLARED, { ...wanted, after: further ? after : null });
    if (!further) cards.replaceChildren();
    cards.append(...products.nodes.map(card));
    after = products.pageInfo.endCursor;
    more.hidden = !products.pageInfo.hasNextPage;
    const count = products.totalCount;
    found.textContent = count === 1 ? t("1 product") : t("{count} products", { count });
  }

  const filter = form(t("Filter"), async (values) => {
    // Without an order, a search has its best match first.
    const orderBy = values.orderBy === "NEWEST" ? null : values.orderBy;
    wanted = { search: values.search || null, category: values.category || null, orderBy };
    await load(false);
  },
  field(t("Search"), { name: "search", type: "search", value: wanted.search ?? "" }),
  field(t("Category"), { name: "category", value: wanted.category ?? "",
    options: [["", t("All")], ...categories.map((one) =>
      [one.slug, one.parent ? `${one.parent.name}: ${one.name}` : one.name])] }),
  field(t("Order"), { name: "orderBy", value: wanted.orderBy ?? "NEWEST", options: ORDERS }),
  h("button", { type: "submit" }, t("Show")));
  filter.className = "filter";
  filter.addEventListener("change", (event) => {
    if (event.target.tagName === "SELECT") filter.requestSubmit();
  });
  await load(false);
  return [h("h1", {}, t("Products")), filter, found, cards, more];
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
  one.compareAtPrice > one.price && h("s", { "aria-label": t("before {price}", { price: money(one.compareAtPrice) }) },
    money(one.compareAtPrice)));

const buy = (one) => one.available
  ? h("button", { type: "button", onclick: () => add(one.id, 1), "aria-label": t("Add {title} to the cart", { title: one.title }) },
    t("Add to cart"))
  : h("p", { class: "badge" }, t("Sold out"));

export async function product(slug) {
  const { product: one, client } = await ask(
    `product(hostname: $hostname, slug: $slug) { ${CARD} description stock categories { name }
       averageStars reviewsCount reviews(first: 10) { nodes { id stars text author createdAt } } }
     client(hostname: $hostname) { user { id } }`, "$slug: String!", { slug });
  if (!one) return [h("h1", {}, t("This product is not on sale")), h("a", { href: "#/" }, t("All products"))];
  const choose = form(t("Add to cart"), (values) => add(one.id, Number(values.quantity)),
    field(t("Quantity"), { name: "quantity", type: "number", min: 1, max: 999, value: 1, required: true }),
    h("button", { type: "submit" }, t("Add to cart")));
  choose.className = "inline";
  return [
    h("article", { class: "product" }, picture(one),
      h("div", {}, h("h1", {}, one.title), stars(one), price(one), h("p", {}, one.description ?? ""),
        h("p", { class: "faint" }, one.categories.map((group) => group.name).join(" · ")),
        one.stock != null && one.stock > 0 && h("p", { class: "faint" }, t("{stock} in stock", { stock: one.stock })),
        one.available ? choose : h("p", { class: "badge" }, t("Sold out")))),
    reviews(one, client.user),
  ];
}

const stars = (one) => one.reviewsCount > 0 && h("p", { class: "stars" },
  h("span", { "aria-hidden": "true" }, "★".repeat(Math.round(one.averageStars))),
  ` ${t("{stars} of 5", { stars: number(one.averageStars) })}, ${one.reviewsCount === 1 ? t("1 review") : t("{count} reviews", { count: one.reviewsCount })}`);

function reviews(one, user) {
  const written = one.reviews.nodes.map((review) => h("li", {},
    h("p", { class: "stars" }, h("span", { role: "img", "aria-label": t("{stars} of 5 stars", { stars: review.stars }) },
      "★".repeat(review.stars))),
    h("p", {}, review.text), h("p", { class: "faint" }, `${review.author ?? t("Customer")}, ${date(review.createdAt)}`)));
  const write = form(t("Write a review"), async (values) => {
    await change("createReview", "review { id }",
      { productId: one.id, stars: Number(values.stars), text: values.text });
    say(t("Thank you for your review."));
    dispatchEvent(new Event("shop:reload"));
  },
  field(t("Stars"), { name: "stars", options: [5, 4, 3, 2, 1].map((n) => [String(n), String(n)]), value: "5" }),
  field(t("Your review"), { name: "text", rows: 3, required: true, maxlength: 5000 }),
  h("button", { type: "submit", class: "quiet" }, t("Publish review")));
  return h("section", { class: "reviews" }, h("h2", {}, t("Reviews")),
    written.length ? h("ul", {}, written) : h("p", { class: "faint" }, t("No reviews yet.")),
    user ? write : h("p", {}, h("a", { href: "#/account" }, t("Sign in")), t(" to write a review.")));
}
