"""Fills the demo's store by the REST API: products, categories, shipping, a coupon, a modal."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from gateway.cli.demo.demo_gateway import DemoFault


@dataclass(frozen=True)
class Good:
    """A product of the demo and its picture."""

    name: str
    price: float
    category: str
    picture: tuple[str, str, str]
    """A shape of `pictures` and its two colours."""
    description: str
    before: float | None = None
    stock: int | None = None
    shipped: bool = True

    @property
    def file(self) -> str:
        """The name of the picture on the shop's server."""
        return "-".join(self.name.lower().split()) + ".svg"


GOODS = (
    Good("Gift card", 100, "Gifts", ("card", "#b8543f", "#f2c879"), "Good for anything here.",
         shipped=False),
    Good("Tasting box", 119.9, "Gifts", ("box", "#8c6a4f", "#c9a27e"),
         "Three small bags, one from each farm.", before=139.9, stock=12),
    Good("Chamomile tea", 24.5, "Tea", ("tin", "#d9a441", "#8a5a00"), "Whole flowers, 50 g.",
         stock=30),
    Good("Green tea", 29.9, "Tea", ("tin", "#5f8f5a", "#2f5c3a"), "Loose leaves, 80 g.", stock=18),
    Good("French press", 149, "Equipment", ("press", "#7a4a2b", "#3b3b42"),
         "Borosilicate glass, 600 ml.", stock=7),
    Good("Hand grinder", 229, "Equipment", ("grinder", "#9a6b45", "#4a4a52"),
         "Steel burrs, 40 settings.", before=259, stock=5),
    Good("Gooseneck kettle", 189.9, "Equipment", ("kettle", "#4f6d7a", "#26363f"),
         "A slow, even pour. One litre.", stock=9),
    Good("Dripper", 59, "Equipment", ("dripper", "#c05b3c", "#6b2f1d"),
         "Ceramic, for one or two cups.", stock=20),
    Good("Enamel mug", 39.9, "Equipment", ("mug", "#3c6e71", "#8fa6a8"), "It survives any camp.",
         stock=0),
    Good("Decaf beans 250 g", 42, "Coffee", ("bag", "#7b8fa1", "#43566b"),
         "Washed with water alone.", stock=16),
    Good("Espresso beans 1 kg", 109.9, "Coffee", ("bag", "#5b3a29", "#2c1a12"),
         "Dark roast, chocolate and nuts.", before=129.9, stock=40),
    Good("Filter beans 250 g", 38.9, "Coffee", ("bag", "#c0703a", "#7a3e12"),
         "Medium roast, orange and honey.", stock=60),
)  # fmt: skip
"""The oldest first, so that the shop shows the last one first."""
CATEGORIES = ("Coffee", "Tea", "Equipment", "Gifts")
RULES = [
    {"type": kind, "name": name, "price": price, "deadline": days, "cepFrom": first, "cepTo": last}
    for kind, name, price, days, first, last in (
        ("courier", "Courier", 12.9, 1, "01000-000", "09999-999"),
        ("standard", "Standard", 19.9, 5, "01000-000", "99999-999"),
        ("express", "Express", 34.9, 2, "01000-000", "99999-999"),
    )
]


PORTUGUESE: Mapping[str, str] = {
    "Gift card": "Vale-presente", "Good for anything here.": "Vale para tudo na loja.",
    "Tasting box": "Caixa degustação",
    "Three small bags, one from each farm.": "Três pacotes pequenos, um de cada fazenda.",
    "Chamomile tea": "Chá de camomila", "Whole flowers, 50 g.": "Flores inteiras, 50 g.",
    "Green tea": "Chá verde", "Loose leaves, 80 g.": "Folhas soltas, 80 g.",
    "French press": "Prensa francesa", "Borosilicate glass, 600 ml.": "Borossilicato, 600 ml.",
    "Hand grinder": "Moedor manual", "Steel burrs, 40 settings.": "Mós de aço, 40 ajustes.",
    "Gooseneck kettle": "Chaleira bico de ganso",
    "A slow, even pour. One litre.": "Fluxo lento e regular. Um litro.",
    "Dripper": "Porta-filtro",
    "Ceramic, for one or two cups.": "Cerâmica, para uma ou duas xícaras.",
    "Enamel mug": "Caneca esmaltada", "It survives any camp.": "Resiste a qualquer acampamento.",
    "Decaf beans 250 g": "Café descafeinado em grãos 250 g",
    "Washed with water alone.": "Processado só com água.",
    "Espresso beans 1 kg": "Café espresso em grãos 1 kg",
    "Dark roast, chocolate and nuts.": "Torra escura, chocolate e nozes.",
    "Filter beans 250 g": "Café para filtro em grãos 250 g",
    "Medium roast, orange and honey.": "Torra média, laranja e mel.",
    "Coffee": "Café", "Tea": "Chá", "Equipment": "Equipamento", "Gifts": "Presentes",
    "Courier": "Motoboy", "Standard": "Padrão", "Express": "Expressa",
    "Drawing: {name}": "Desenho: {name}",
    "15 % for your first order": "15 % no primeiro pedido",
}  # fmt: skip
"""What the Portuguese store says in place of the English words above and below."""


@dataclass
class Owner:
    """A client of the REST API with the owner's key."""

    http: aiohttp.ClientSession
    url: str
    key: str

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Return the body of a response. Raise DemoFault unless it is 2xx."""
        try:
            async with self.http.request(
                method, self.url + path, json=body, headers={"X-API-Key": self.key}
            ) as answer:
                if answer.status >= 300:
                    text = await answer.text()
                    raise DemoFault(f"{method} {path} returned {answer.status}: {text}")
                return await answer.json()
        except aiohttp.ClientError as error:
            raise DemoFault(f"the gateway is not reachable: {error}") from error


async def open_stores(owner: Owner, hostname: str, page: str) -> str:
    """Create a store in each language for the shop; return the hostname of the Portuguese one."""
    portuguese = f"br-{hostname}"
    await open_store(owner, hostname, page)
    await open_store(owner, portuguese, page, "pt-BR")
    return portuguese


async def open_store(
    owner: Owner, hostname: str, page: str, language: str = "en"
) -> Mapping[str, Any]:
    """Create the store for the shop at the origin `page`, with all it sells; return the store."""

    def said(text: str) -> str:
        return PORTUGUESE.get(text, text) if language == "pt-BR" else text

    store: Mapping[str, Any] = await owner.call("POST", "/api/stores", {
        "hostname": hostname, "name": "Café da Esquina", "allowedOrigins": [page],
        "shippingRules": [{**rule, "name": said(str(rule["name"]))} for rule in RULES],
        "language": language, "pixKey": "pix@cafe.example",
    })  # fmt: skip
    of_store = {"storeId": store["id"]}
    for name in CATEGORIES:
        await owner.call("POST", "/api/categories", {**of_store, "name": said(name)})
    for good in GOODS:
        name = said(good.name)
        alt = said("Drawing: {name}").format(name=name)
        image = {"url": f"{page}/pictures/{good.file}", "alt": alt}
        await owner.call("POST", "/api/products", {
            **of_store, "name": name, "price": good.price, "compareAtPrice": good.before,
            "stock": good.stock, "description": said(good.description),
            "categories": [said(good.category)],
            "images": [image], "requiresShipping": good.shipped,
        })  # fmt: skip
    await owner.call("POST", "/api/coupons", {
        **of_store, "code": "WELCOME10", "discountPercentage": 10,
    })  # fmt: skip
    await owner.call("POST", "/api/discount-modals", {
        **of_store, "title": said("15 % for your first order"), "prefix": "HELLO",
        "discountPercentage": 15, "validDays": 30,
    })  # fmt: skip
    return store


async def pay(owner: Owner, number: str) -> None:
    """Pay the invoice of an order, as a bank's notice would. Raise DemoFault."""
    orders = await owner.call("GET", f"/api/orders?number={number}")
    for order in orders["data"]:
        await owner.call("POST", f"/api/invoices/{order['invoiceId']}/pay", {"method": "pix"})
