"""Visitors of a store, and its owner's calls between, get their recorded responses.

Every documented operation that needs no other server is sent as it is documented.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.rest.corpus.corpus import Call, compare
from tests.support.carts import WARNINGS
from tests.support.checkouts import ADDRESS, BUYER, ORDER, PASSWORD, RULES
from tests.support.operations import operation
from tests.support.rest import UNLIMITED

NOWHERE = "0123456789ab0123456789ab"
HOST = "shop.example"
LINES = "products { id productId title price quantity available images { url alt } }"
SUMS = "totalPrice totalQuantity totalDiscount totalShipping total"
TERMS = (
    "coupon { code discountPercentage discountValue } cep shippingType requiresShipping"
    f" shippingOptions {{ type name price deadline freeFrom }} {WARNINGS}"
)
CART = f"shoppingCart(hostname: $h) {{ id {SUMS} {LINES} {TERMS} }}"
CHANGED = (
    f"shoppingCart {{ {SUMS} products {{ productId quantity available }} {TERMS} }} {WARNINGS}"
)
BOUGHT = f"order {{ {ORDER} }} payment {{ method pixCode }} {WARNINGS}"
PRODUCTS = "nodes { title price } totalCount pageInfo { hasNextPage endCursor }"
FAR = {**ADDRESS, "cep": "69005-010", "city": "Manaus", "state": "AM"}
FREE = {**RULES[0], "freeFrom": 100}
UNKNOWN = "018f3a5b7c9d1e2f3a4b5c6d"


def own(
    method: str, path: str, body: Any = None, save: str = "", who: str = "ana", minutes: int = 0
) -> Call:
    """A call of the owner."""
    return Call(method, f"/api/{path}", body, who, save=save, minutes=minutes)


def ask(selection: str, who: str = "eva", host: str = HOST, save: str = "", **more: Any) -> Call:
    """A query; `hostname: $h` names the store in the selection."""
    body = {"query": f"query ($h: String!) {{ {selection} }}", "variables": {"h": host}}
    return Call("POST", "/graphql", body, who, more, save)


def do(
    name: str, selection: str, who: str = "eva", save: str = "", /, *, minutes: Any = 0,
    headers: Any = None, **sent: Any,
) -> Call:  # fmt: skip
    """A mutation with these values of its input."""
    kind = name[0].upper() + name[1:]
    query = f"mutation ($input: {kind}MutationInput!) {{ {name}(input: $input) {{ {selection} }} }}"
    body = {"query": query, "variables": {"input": {"hostname": HOST, **sent}}}
    return Call("POST", "/graphql", body, who, headers or {}, save, minutes=minutes)


def cart(name: str, who: str = "eva", save: str = "", /, **sent: Any) -> Call:
    """A change of the cart."""
    return do(f"shoppingCart{name}", CHANGED, who, save, **sent)


def check_out(who: str = "eva", save: str = "", /, **sent: Any) -> Call:
    return do("checkout", BOUGHT, who, save, **{**BUYER, **sent})


def documented(name: str, who: str = "eva", save: str = "", **places: str) -> Call:
    """The operation as the documentation shows it."""
    query, variables = operation(name, **places)
    return Call("POST", "/graphql", {"query": query, "variables": variables}, who, save=save)


def visits() -> Iterator[Call]:
    """Yield all calls in order."""
    yield from _catalogue()
    yield from _requests()
    yield from _carts()
    yield from _coupons()
    yield from _shipping()
    yield from _checkouts()
    yield from _orders()
    yield from _accounts()
    yield from _reviews()
    yield from _leads()
    yield from _modals()
    yield from _ends()


def _catalogue() -> Iterator[Call]:
    body: dict[str, Any]
    yield own("POST", "stores", {"hostname": HOST, "name": "Coffee Shop"}, "shop")
    yield own("POST", "stores", {"hostname": "two.example", "name": "Two"}, "two")
    yield own("POST", "stores", {"hostname": "other.example", "name": "O"}, "other", "bia")
    for body in (
        {"hostname": "Shop.Example", "name": "Copy"},
        {"hostname": "copy.example", "name": "Copy", "aliases": [HOST]},
    ):
        yield own("POST", "stores", body, who="bia")
    yield own("PUT", "stores/{shop}", {"aliases": ["www.shop.example"]})
    for host in ("www.shop.example", "SHOP.example.", "shop.example:8443", "none.example", ""):
        yield ask("store(hostname: $h) { id name hostname paymentMethods }", host=host)
    yield documented("store")
    drinks = {"storeId": "{shop}", "name": "Drinks"}
    yield own("POST", "categories", drinks, "drinks")
    yield own("POST", "categories", {**drinks, "name": "Coffee", "parentId": "{drinks}"}, "coffee")
    yield own("POST", "categories", {"storeId": "{other}", "name": "Coffee"}, "hers", "bia")
    images = [{"url": "https://x.example/a.jpg", "alt": "A bag"}, {"url": "https://x.example/b"}]
    for save, body in {
        "beans": {
            "name": "Coffee beans 1 kg", "price": 89.9, "compareAtPrice": 109.9, "sku": "COF-1",
            "stock": 25, "description": "Whole beans.", "categories": ["COFFEE", "Other"],
            "images": images,
        },
        "tea": {"name": "Chá", "price": 0.07, "stock": 0, "categories": ["drinks", "Drinks"]},
        "mug": {"name": "Café com Leite!", "price": 19.99},
        "cup": {"name": "cafe com leite", "price": 9_999_999_999.99},
        "china": {"name": "咖啡", "price": 1.1},
        "again": {"name": "咖啡", "price": 2, "slug": "china"},
        "hidden": {"name": "Hidden", "price": 1, "published": False},
        "sleeping": {"name": "Asleep", "price": 1, "active": False},
        "nowhere": {"name": "No store", "price": 1, "storeId": None},
        "second": {"name": "Second store", "price": 1, "storeId": "{two}"},
    }.items():  # fmt: skip
        yield own("POST", "products", {"storeId": "{shop}", **body}, save)
    theirs = {"name": "Coffee of another", "price": 1, "storeId": "{other}"}
    yield own("POST", "products", {**theirs, "categories": ["Coffee"]}, "theirs", "bia")
    yield own("POST", "products", {"name": "X", "price": 1, "slug": "china", "storeId": "{shop}"})
    yield own("PUT", "products/{nowhere}", {"slug": "china"})
    yield own("PUT", "products/{nowhere}", {"storeId": "{shop}"})
    yield own("PUT", "products/{nowhere}", {"storeId": "{shop}", "slug": None})
    yield own("PUT", "products/{nowhere}", {"name": "Renamed"})
    one = "id title slug description price compareAtPrice currency sku available stock"
    more = "images { url alt } categories { id name slug parent { name } } groups { name }"
    for product in ("beans", "tea", "mug", "cup", "hidden", "sleeping", "second", "theirs"):
        yield ask(
            f'product(hostname: $h, id: "{{{product}-global}}") {{ {one} {more} createdAt'
            " updatedAt requiresShipping averageStars reviewsCount }"
        )
        yield ask(f'store(hostname: $h) {{ id }} node(id: "{{{product}-global}}") {{ id }}')
    for name in ("products", "searchProducts", "product", "categories", "categoriesConnection"):
        yield documented(name)
    yield documented("node", productId="{beans-global}")
    yield documented("nodes", productId="{beans-global}", categoryId="{coffee-global}")
    for words in (
        "first: 2", "last: 2", "orderBy: TITLE, first: 3", "orderBy: PRICE_ASC", "first: 0",
        "orderBy: PRICE_DESC, last: 2", 'search: "CAFE"', 'search: "cof-1"', 'search: "leites"',
        'search: "%"', 'search: "\\u001f"', 'search: ""', 'category: "coffee"',
        'category: "{coffee-global}"', 'category: "{hers-global}"', 'category: "none"',
        'category: "a\\u0000"', 'category: "drinks", includeChildren: true', "inStock: true",
        "minPrice: 7, maxPrice: 110", "minPrice: 7.5, maxPrice: 109.9, orderBy: PRICE_ASC",
        "minPrice: 300, maxPrice: 100", "minPrice: -1e300, maxPrice: 1e300", "first: 101",
        "first: -1", "last: 101", 'after: "x"', 'before: "%%%"', f'search: "{"a" * 201}"',
        'search: "a\\u0000"', "orderBy: NEW",
    ):  # fmt: skip
        yield ask(f"products(hostname: $h, {words}) {{ {PRODUCTS} }}")
    shown = "nodes { title } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
    end = "end=data.products.pageInfo.endCursor"
    yield ask(f"products(hostname: $h, first: 2) {{ {shown} }}", save=end)
    # A cursor outlives its product, and belongs to its order.
    yield own("PUT", "products/{china}", {"published": False})
    for order in ("NEWEST", "TITLE", "PRICE_ASC"):
        words = f'hostname: $h, first: 2, after: "{{end}}", orderBy: {order}'
        yield ask(f"products({words}) {{ {shown} }}")
    kinds = ("Product", "Store", "AuthUser", "Contact")
    ids = [f"{{{one}-global}}" for one in ("beans", "shop", "coffee", "hidden", "two")]
    fields = "id __typename ... on Product { title } ... on Store { hostname }"
    listed = ", ".join(f'"{one}"' for one in (*ids, "x", *kinds, ids[0]))
    yield ask(f"store(hostname: $h) {{ id }} nodes(ids: [{listed}]) {{ {fields} }}")
    yield own("PUT", "categories/{coffee}", {"parentId": None})
    pages = "nodes { slug parent { slug } } totalCount pageInfo { hasPreviousPage hasNextPage }"
    for words in ("", ", last: 1", ', parent: "drinks"', ', parent: "{coffee-global}"'):
        yield ask(f"categoriesConnection(hostname: $h{words}) {{ {pages} }}")
    yield own("PUT", "categories/{coffee}", {"parentId": "{drinks}"})
    for selection in (
        "product(hostname: $h) { id }", 'product(hostname: $h, id: "x") { id }',
        'product(hostname: $h, id: "{shop-global}") { id }',
        'product(hostname: $h, id: "x", slug: "x") { id }',
        'product(hostname: $h, slug: "a\\u0000") { id }',
        'categoriesConnection(hostname: $h, parent: "drinks", topLevel: true) { totalCount }',
    ):  # fmt: skip
        yield ask(selection)


def _requests() -> Iterator[Call]:
    """What a document may be wrong in; no answer repeats a value or suggests a name."""
    for text in ("{ stor { id } }", '{ store(hostnam: "a") { id } }', "{", "mutation { a }"):
        yield Call("POST", "/graphql", {"query": text}, "eva")
    lead = "mutation ($input: LeadMutationInput!) { lead(input: $input) { success } }"
    for sent in (
        {"hostname": HOST, "email": 5}, {"hostname": HOST, "email": None}, {"hostname": HOST},
        {"hostname": HOST, "email": "a@b.example", "none": 1}, None,
        {"hostname": HOST, "email": "a@b.example", "f" * 5_000: 1},
        {"hostname": HOST, "email": ["correct horse"]},
    ):  # fmt: skip
        yield Call("POST", "/graphql", {"query": lead, "variables": {"input": sent}}, "eva")
    typename = {"query": "{ __typename }", "variables": None, "operationName": None, "id": 1}
    yield Call("POST", "/graphql", typename, "eva")
    login = "clientMutationId token"
    for password in (7_351_942, ["correct horse"], "a\x7f" * 99):
        yield do("clientLogin", login, email="ana@example.com", password=password)
    yield do("clientLogin", login, email="ana@example.com", senha="correct horse")


def _carts() -> Iterator[Call]:
    yield documented("shoppingCart", "first")
    yield ask("a: shoppingCart(hostname: $h) { id } b: shoppingCart(hostname: $h) { id }", "second")
    yield cart("Clear", "first")
    yield documented("shoppingCartAddProduct", "first", productId="{beans-global}")
    yield cart("AddProduct", "first", productId="{beans-global}", quantity=2)
    yield cart("AddProduct", "first", productId="{mug-global}")
    yield ask(CART, "first", save="line=data.shoppingCart.products.0.id")
    yield documented("shoppingCartUpdateProduct", "first", lineId="{line}")
    yield cart("UpdateProduct", "first", id="{mug-global}", quantity=3)
    yield cart("UpdateProduct", "first", id="{line}", quantity=0)
    for change in ({"id": "{line}"}, {"id": "{beans-global}"}, {"id": "tea"}):
        yield cart("RemoveProduct", "first", **change)
        yield cart("UpdateProduct", "first", quantity=1, **change)
    # Another visitor, another store, another owner.
    yield cart("RemoveProduct", "second", id="{mug-global}")
    for product in ("hidden", "sleeping", "second", "theirs", "shop"):
        yield cart("AddProduct", "second", productId=f"{{{product}-global}}")
    for product in (NOWHERE, "x"):
        yield cart("AddProduct", "second", productId=product)
    for quantity in (0, -1, 1000):
        yield cart("AddProduct", "second", productId="{mug-global}", quantity=quantity)
    yield cart("AddProduct", "second", productId="{mug-global}", quantity=999)
    yield cart("AddProduct", "second", productId="{mug-global}")
    for quantity in (1000, -1):
        yield cart("UpdateProduct", "second", id="{mug-global}", quantity=quantity)
    yield cart("AddProduct", "second", productId="{cup-global}", quantity=100)
    yield ask("shoppingCart(hostname: $h) { products { id } }", "first", "other.example")
    # The newest version limits to the stock; older ones refuse.
    yield cart("AddProduct", "third", productId="{tea-global}")
    for version in ("2026-01-01", "2026-10-31"):
        old = {"X-API-Version": version}
        yield cart("AddProduct", "old", productId="{beans-global}", quantity=26, headers=old)
    yield cart("AddProduct", "third", productId="{beans-global}", quantity=26)
    yield cart("UpdateProduct", "third", id="{beans-global}", quantity=99)
    yield ask(CART, "third")
    yield own("PUT", "products/{beans}", {"price": 12.34})
    for _ in range(2):
        yield ask(CART, "third")
    yield cart("UpdateProduct", "third", id="{beans-global}", quantity=5)
    yield ask(CART, "third")
    yield own("PUT", "products/{beans}", {"price": 89.9, "stock": 2})
    yield ask(CART, "third")
    yield cart("UpdateProduct", "third", id="{beans-global}", quantity=2)
    yield cart("AddProduct", "third", productId="{mug-global}")
    yield own("PUT", "products/{beans}", {"published": False})
    yield ask(CART, "third")
    yield cart("UpdateProduct", "third", id="{beans-global}", quantity=2)
    yield own("PUT", "products/{beans}", {"published": True, "stock": 200})
    yield cart("AddProduct", "third", productId="{mug-global}")
    yield ask(CART, "third")
    yield documented("shoppingCartRemoveProduct", "third", lineId="{mug-global}")
    yield documented("shoppingCartClear", "third")


def _coupons() -> Iterator[Call]:
    for save, body in {
        "welcome": {"code": "WELCOME10", "discountPercentage": 10, "minTotal": 50},
        "fine": {"code": "Promoção", "discountPercentage": 33.33},
        "value": {"code": "VALUE", "discountValue": 15.5, "maxUses": 1},
        "off": {"code": "OFF", "discountValue": 1, "active": False},
        "ended": {"code": "ENDED", "discountValue": 1, "endsAt": "2026-01-01"},
        "later": {"code": "LATER", "discountValue": 1, "startsAt": "2099-01-01"},
        "dear": {"code": "DEAR", "discountValue": 1, "minTotal": 2000.01},
        "all": {"code": "ALL", "discountPercentage": 100},
    }.items():
        yield own("POST", "coupons", {"storeId": "{shop}", **body}, save)
    theirs = {"storeId": "{other}", "code": "THEIRS", "discountValue": 1}
    yield own("POST", "coupons", theirs, who="bia")
    yield cart("AddProduct", productId="{beans-global}")
    yield documented("shoppingCartApplyCoupon")
    for code in ("OFF", "ENDED", "LATER", "DEAR", "THEIRS", "NONE", "", "%", "x" * 10_000):
        yield cart("ApplyCoupon", code=code)
    # The one before stays, until the cart no longer reaches its least total.
    yield ask(CART)
    yield cart("AddProduct", productId="{mug-global}")
    yield cart("RemoveProduct", id="{beans-global}")
    yield ask(CART)
    yield cart("ApplyCoupon", code="PROMOCAO")
    yield cart("UpdateProduct", id="{mug-global}", quantity=3)
    yield own("PUT", "coupons/{fine}", {"active": False})
    for _ in range(2):
        yield ask(CART)
    yield cart("AddProduct", productId="{beans-global}")
    yield own("PUT", "coupons/{fine}", {"active": True})
    yield cart("ApplyCoupon", code="promocao")
    yield own("DELETE", "coupons/{fine}")
    yield ask(CART)
    yield cart("ApplyCoupon", code="welcome10")
    yield documented("shoppingCartRemoveCoupon")


def _shipping() -> Iterator[Call]:
    for sent in (0, -1, "100", 1.005, None, 199.9):
        rules = [{**RULES[0], "freeFrom": sent}, {**RULES[0], "type": "late", "cepTo": "09999999"}]
        yield own("PUT", "stores/{shop}", {"shippingRules": rules})
    for second in (
        {"cepFrom": "05999999"}, {"cepFrom": "00000000", "cepTo": "01000000"},
        {"cepFrom": "06000001", "cepTo": "06000000"}, {"cepFrom": "06000000"},
    ):  # fmt: skip
        rules = [RULES[0], {**RULES[0], "cepTo": "99999999", **second}]
        yield own("PUT", "stores/{shop}", {"shippingRules": rules})
    near = {**RULES[0], "name": "Late", "cepFrom": "06000000", "cepTo": "09999999"}
    yield own("PUT", "stores/{shop}", {"shippingRules": [FREE, near]})
    for cep in ("00999999", "01000000", "05999999", "06000000", "09999999", "10000000"):
        yield ask(f'shippingQuote(hostname: $h, cep: "{cep}") {{ name price deadline }}')
        yield cart("SetShipping", "quoted", cep=cep)
    for cep in ("", "0131010", "013101000", "01310_100", "abcdefgh", "０１３１０１００"):
        yield cart("SetShipping", "quoted", cep=cep)
    yield documented("shippingQuote", productId="{beans-global}")
    for words in (
        "", ", quantity: 2", ', productId: "{mug-global}"', ', productId: "x"',
        ', productId: "{mug-global}", quantity: 6', ', productId: "{hidden-global}"',
        ', productId: "{mug-global}", quantity: 0', ', productId: "{mug-global}", quantity: 1000',
    ):  # fmt: skip
        words = f'hostname: $h, cep: "01310-100"{words}'
        yield ask(f"shippingQuote({words}) {{ type price freeFrom }}")
    yield cart("SetShipping", "ship", cep="01310-100")
    yield cart("AddProduct", "ship", productId="{mug-global}", quantity=5)
    yield documented("shoppingCartSetShipping", "ship")
    yield cart("SetShipping", "ship", cep="06000000", type="boat")
    # It is what the visitor did, so no warning tells that shipping became free.
    yield cart("UpdateProduct", "ship", id="{mug-global}", quantity=6)
    # A coupon does not make it dearer.
    yield cart("ApplyCoupon", "ship", code="WELCOME10")
    yield own("PUT", "stores/{shop}", {"shippingRules": [{**RULES[0], "price": 30}, RULES[1]]})
    yield ask(CART, "ship")
    yield own("PUT", "stores/{shop}", {"shippingRules": [RULES[1]]})
    yield ask(CART, "ship")
    yield cart("RemoveCoupon", "ship")
    yield own("PUT", "stores/{shop}", {"shippingRules": RULES})
    yield ask(CART, "ship")
    yield cart("SetShipping", "ship", cep="01310100", type="express")
    yield cart("RemoveProduct", "ship", id="{mug-global}")


def _checkouts() -> Iterator[Call]:
    sent: dict[str, Any]
    wrong: Any
    body: Any
    yield check_out("none")
    # Nothing goes without shipping that the store charges, or where no rule leads.
    yield own("PUT", "stores/{shop}", {"shippingRules": [RULES[0]]})
    yield cart("AddProduct", "buyer", productId="{beans-global}", quantity=2)
    for sent in ({}, {"address": ADDRESS}, {"address": FAR}):
        yield check_out("buyer", **sent)
    yield cart("SetShipping", "buyer", cep="01310-200")
    yield check_out("buyer", address=ADDRESS)
    yield cart("SetShipping", "buyer", cep="01310-200", type="express")
    yield check_out("buyer")
    yield check_out("buyer", address=FAR)
    for wrong in (
        {"email": "maria"}, {"name": " "}, {"phone": "abc"}, {"document": "123.456.789-00"},
        {"document": "111.111.111-11"}, {"paymentMethod": "gold"}, {"notes": "x" * 5_001},
        {"idempotencyKey": "x" * 256}, {"expectedTotal": 89.9}, {"expectedTotal": -1},
        {"address": {**ADDRESS, "cep": "123"}}, {"address": {**ADDRESS, "state": "XX"}},
        {"address": {**ADDRESS, "street": " "}},
        {"email": "x", "phone": "y", "address": {**ADDRESS, "cep": "z"}},
    ):  # fmt: skip
        yield check_out("buyer", **{"address": ADDRESS, **wrong})
    yield own("PUT", "stores/{shop}", {"shippingRules": RULES[1:], "pixKey": "pix@shop.example"})
    yield check_out("buyer", address=ADDRESS)
    yield own("PUT", "stores/{shop}", {"shippingRules": RULES})
    yield cart("SetShipping", "buyer", cep="01310-200", type="express")
    yield documented("checkout", "buyer", "first=data.checkout.order.accessToken")
    for _ in range(2):
        # The same key gets the same order; the cart is another one.
        yield documented("checkout", "buyer")
    yield ask(CART, "buyer")
    yield own("GET", "orders", who="ana")
    for path in ("invoices", "contacts", "deals", "products/{beans}"):
        yield own("GET", path)
    # What is trimmed and kept without its mask; the key of another visitor; a known contact.
    yield own("PUT", "stores/{shop}", {"shippingRules": []})
    for who, sent in (
        ("b1", {"email": " MARIA@example.com ", "phone": "", "notes": " ", "document": ""}),
        ("b2", {"document": "11.222.333/0001-81", "idempotencyKey": "5c1c0d7e-order-1"}),
        ("b3", {"document": "12abc34501de35", "paymentMethod": "card", "phone": "1133334444"}),
    ):
        yield cart("AddProduct", who, productId="{beans-global}")
        yield check_out(who, **sent)
    yield cart("AddProduct", "b1", productId="{mug-global}")
    yield check_out("b1", idempotencyKey="k")
    yield cart("AddProduct", "b1", productId="{mug-global}")
    yield check_out("b1", idempotencyKey="k", name="Another")
    # After a day a key can be used again.
    yield do("checkout", BOUGHT, "b1", **BUYER, idempotencyKey="k", minutes=1441)
    # Too little stock, and what is no longer sold.
    yield cart("AddProduct", "b4", productId="{beans-global}", quantity=3)
    yield cart("AddProduct", "b4", productId="{mug-global}")
    yield own("PUT", "products/{beans}", {"stock": 2})
    yield check_out("b4")
    yield own("PUT", "products/{beans}", {"stock": 200})
    yield own("PUT", "products/{mug}", {"published": False})
    for _ in range(2):
        yield check_out("b4")
    yield own("PUT", "products/{mug}", {"published": True})
    # A coupon is used and given back; the next buyer pays.
    for who in ("b5", "b6"):
        yield cart("AddProduct", who, productId="{beans-global}")
    yield cart("ApplyCoupon", "b5", code="value")
    yield check_out("b5", "coupon=data.checkout.order.accessToken")
    yield cart("ApplyCoupon", "b6", code="VALUE")
    cancel = {"number": "ORD-000008", "accessToken": "{coupon}"}
    yield do("orderCancel", "order { status canceledAt }", "b5", **cancel)
    yield cart("ApplyCoupon", "b6", code="VALUE")
    yield own("PUT", "coupons/{value}", {"endsAt": "2026-01-01"})
    for _ in range(2):
        yield check_out("b6", email="ana@example.com")
    yield own("GET", "coupons/{value}")
    yield cart("AddProduct", "b6", productId="{beans-global}")
    yield cart("ApplyCoupon", "b6", code="WELCOME10")
    yield own("DELETE", "coupons/{welcome}")
    yield check_out("b6")
    for body in (
        {"pixKey": "529.982.247-24"}, {"checkoutUrl": "http://pay.example/{token}"},
        {"checkoutUrl": "https://pay.example/"}, {"checkoutUrl": "https://pay.example/{x}{token}"},
    ):  # fmt: skip
        yield own("PUT", "stores/{shop}", body)
    # An order for nothing is paid at once.
    yield cart("AddProduct", "b7", productId="{mug-global}")
    yield cart("ApplyCoupon", "b7", code="ALL")
    yield check_out("b7")
    for path in ("orders?status=paid", "invoices?status=paid", "deals?status=won"):
        yield own("GET", path, save="free=data.0.id" if path.startswith("orders") else "")
    yield own("POST", "orders/{free}/cancel", {})
    yield own("PUT", "stores/{shop}", {"paymentMethods": ["card", "cash", "card"]})
    for sent in ({}, {"paymentMethod": "boleto"}, {"paymentMethod": "cash"}):
        yield cart("AddProduct", "b8", productId="{mug-global}")
        yield check_out("b8", **sent)
    every = ["pix", "boleto", "card", "transfer", "cash"]
    for wrong in ([], ["pix", "gold"], None, "pix", every):
        yield own("PUT", "stores/{shop}", {"paymentMethods": wrong})

    # Goods that are not shipped never ask, and an option that nothing needs costs nothing.
    yield own("PUT", "stores/{shop}", {"shippingRules": RULES[:1]})
    yield own("PUT", "products/{mug}", {"requiresShipping": False})
    yield cart("SetShipping", "ship", cep="01310100", type="express")
    yield cart("AddProduct", "ship", productId="{mug-global}")
    yield cart("AddProduct", "ship", productId="{again-global}")
    yield cart("RemoveProduct", "ship", id="{again-global}")
    yield check_out("ship")
    for body in ({"requiresShipping": None}, {"requiresShipping": "no"}):
        yield own("PUT", "products/{mug}", body)
    yield own("PUT", "stores/{shop}", {"shippingRules": []})


def _orders() -> Iterator[Call]:
    def see(number: str, token: str) -> str:
        order = f'order(hostname: $h, number: "{number}", accessToken: "{token}")'
        return f"{order} {{ {ORDER} }}"

    for host in (HOST, "two.example"):
        yield ask(see("ORD-000001", "{first}"), "stranger", host)
    for number, token in (
        ("ORD-000001", ""), ("ORD-000001", "x"), ("ORD-000001", "{first}x"),
        ("ORD-000001", "{coupon}"), ("ORD-000009", "{first}"), ("' or 1=1", "{first}"),
        ("\\u0000", "x"), ("ORD-000001", "\\u0000"), ("ORD-000001", "x" * 9_999),
    ):  # fmt: skip
        yield ask(see(number, token), "stranger")
    yield do("orderCancel", "order { id }", "stranger", number="ORD-000001", accessToken="x")
    yield documented("order", "stranger", accessToken="{first}")
    # Later changes leave an order as it is.
    yield own("PUT", "products/{beans}", {"price": 99, "name": "Another"})
    yield documented("order", "stranger", accessToken="{first}")
    for _ in range(2):
        yield documented("orderCancel", "stranger", accessToken="{first}")
    yield own("PUT", "products/{beans}", {"price": 89.9, "name": "Coffee beans 1 kg"})
    yield documented("orders", "stranger")
    yield cart("AddProduct", "b9", productId="{beans-global}")
    yield check_out("b9", "paid=data.checkout.order.accessToken")
    yield own("GET", "orders?limit=1", save="invoice=data.0.invoiceId")
    yield own("POST", "invoices/{invoice}/pay", {})
    number = "ORD-000013"
    yield ask(see(number, "{paid}"), "b9")
    yield do("orderCancel", "order { id }", "b9", number=number, accessToken="{paid}")


def _accounts() -> Iterator[Call]:
    user = "client(hostname: $h) { store { name } user { name email phone emailVerified } }"
    yield documented("client", "maria")
    for wrong in (
        {"password": "12345"}, {"password": "é" * 5}, {"password": "a" * 129}, {"name": " "},
        {"email": "no address"}, {"phone": "call me"},
    ):  # fmt: skip
        sent = {"name": "Ana", "email": "ana@example.com", "password": PASSWORD, **wrong}
        yield do("clientSignup", "token", "maria", **sent)
    yield documented("clientSignup", "maria", "old=data.clientSignup.token")
    for email in ("maria@example.com", "  MARIA@EXAMPLE.COM "):
        sent = {"name": "Eve", "email": email, "password": PASSWORD}
        yield do("clientSignup", "token user { email }", "eve", **sent)
    yield documented("clientLogin", "maria")
    # Signing in ended the session before.
    yield ask(user, "laptop", Authorization="Bearer {old}")
    for email, password in (
        ("maria@example.com", "correct hors"), ("nobody@example.com", "correct horse"),
        ("a" * 5_000, "correct horse"),
    ):  # fmt: skip
        yield do("clientLogin", "token", "laptop", email=email, password=password)
    yield ask(user, "maria")
    yield ask(user, "maria", "two.example")
    yield documented("clientUpdate", "maria")
    yield do("clientUpdate", "user { name }", "maria", name=None)
    yield documented("clientAddressSave", "maria", "home=data.clientAddressSave.address.id")
    change = {**ADDRESS, "id": "{home}", "number": "3", "state": "sp"}
    yield do("clientAddressSave", "address { number state } addresses { id }", "maria", **change)
    for wrong in ({"cep": "123"}, {"state": "XX"}, {"street": " "}, {"id": "x"}, {"id": UNKNOWN}):
        yield do("clientAddressSave", "address { id }", "maria", **{**ADDRESS, **wrong})
    yield do("clientAddressDelete", "success", "maria", id=UNKNOWN)
    yield documented("client", "maria")
    yield cart("AddProduct", "maria", productId="{mug-global}", quantity=2)
    yield check_out("maria")
    yield ask("orders(hostname: $h) { nodes { number } totalCount }", "maria")
    yield documented("orders", "maria")
    yield documented("clientExportData", "maria")
    yield documented("clientAddressDelete", "maria", addressId="{home}")
    # One cart on every device; a sign-in takes the visitor's quantities.
    yield cart("AddProduct", "maria", productId="{mug-global}", quantity=9)
    yield cart("AddProduct", "maria", productId="{again-global}")
    yield cart("AddProduct", "laptop", productId="{mug-global}", quantity=4)
    yield cart("AddProduct", "laptop", productId="{beans-global}")
    yield documented("clientLogin", "laptop")
    for who in ("laptop", "maria"):
        yield ask(CART, who)
    yield documented("clientChangePassword", "maria")
    yield ask(user, "laptop")
    yield documented("clientRequestPasswordReset", "laptop")
    yield documented("clientVerifyEmail", "laptop", token="x")
    yield documented("clientResetPassword", "laptop", token="x")
    yield documented("clientIdpLogin", "laptop", idToken="x")
    yield documented("clientIdpSignup", "laptop", idToken="x")
    yield documented("clientLinkIdp", "maria", idToken="x")
    # What the owner sees of a customer, and may change.
    yield own("GET", "clients", save="client=data.0.id")
    body = {"name": "Ana Lima", "email": "eve@e.example", "emailVerified": True, "password": "x"}
    yield own("PUT", "clients/{client}", body)
    yield own("PUT", "clients/{client}", {"name": None})
    yield own("POST", "clients", body)
    for query in ("search=maria@ex", "search=nobody", "storeId={two}"):
        yield own("GET", f"clients?{query}")


def _reviews() -> Iterator[Call]:
    stars = 'product(hostname: $h, id: "{beans-global}") { averageStars reviewsCount }'
    review = "review { id stars text author }"
    yield documented("createReview", "stranger", productId="{beans-global}")
    yield documented("createReview", "maria", productId="{beans-global}")
    for wrong in (
        {"stars": 0}, {"stars": 6}, {"text": ""}, {"text": "a" * 5_001}, {"productId": UNKNOWN},
        {"productId": "{shop-global}"},
    ):  # fmt: skip
        sent = {"productId": "{beans-global}", "stars": 5, "text": "Good.", **wrong}
        yield do("createReview", review, "maria", **sent)
    sent = {"productId": "{beans-global}", "text": "Good."}
    yield do("createReview", review, "maria", stars=5, **sent)
    yield own("PUT", "stores/{shop}", {"reviewModeration": True})
    written = "written=data.createReview.review.id"
    yield do("createReview", review, "maria", written, stars=4, **sent)
    yield documented("reviews", productId="{beans-global}")
    yield own("GET", "reviews", save="review=data.0.id")
    for status in ("published", "rejected", "published"):
        yield own("PUT", "reviews/{review}", {"status": status})
        yield ask('store(hostname: $h) { id } node(id: "{written}") { ... on Review { text } }')
        yield ask(stars)
    shown = "nodes { text author } totalCount pageInfo { hasNextPage hasPreviousPage endCursor }"
    words = 'hostname: $h, productId: "{beans-global}", first: 2'
    yield ask(f"reviews({words}) {{ {shown} }}", save="end=data.reviews.pageInfo.endCursor")
    for after in ("{end}", "x"):
        yield ask(f'reviews({words}, after: "{after}") {{ {shown} }}')
    yield own("GET", "activities?type=note&limit=3")


def _leads() -> Iterator[Call]:
    yield documented("lead")
    again = {"email": " MARIA@example.com", "name": " M ", "phone": "", "source": ""}
    yield do("lead", "success clientMutationId", clientMutationId="7", **again)
    yield do("lead", "success", email="joao@example.com", name="João", phone="911")
    yield do("lead", "success", email="joao@example.com", name="Eve", phone="11 98888-7777")
    for wrong in (
        {"email": "maria"}, {"email": ""}, {"phone": "call me"}, {"name": "M" * 201},
        {"source": "s" * 101},
    ):  # fmt: skip
        yield do("lead", "success", **{"email": "m@example.com", **wrong})
    text = 'email: "m@example.com", name: "a\\u0000b"'
    text = f'mutation {{ lead(input: {{ hostname: "{HOST}", {text} }}) {{ success }} }}'
    yield Call("POST", "/graphql", {"query": text}, "eva")
    book = {"title": "The guide", "fileUrl": "https://files.example/g.pdf"}
    for save, store, who, more in (
        ("book", "shop", "ana", {}), ("inactive", "shop", "ana", {"active": False}),
        ("elsewhere", "two", "ana", {}), ("foreign", "other", "bia", {}),
    ):  # fmt: skip
        yield own("POST", "ebooks", {**book, "storeId": f"{{{store}}}", **more}, save, who)
    yield own("POST", "companies", {"name": "ACME LTDA"})
    reader = {"email": "reader@example.com"}
    for ebook in ("book", "book-global", "inactive", "elsewhere", "foreign", "shop"):
        yield do("ebookLead", "success downloadUrl", ebookId=f"{{{ebook}}}", **reader)
    yield documented("ebookLead", ebookId="{book}")
    # A box that is not ticked withdraws nothing.
    for accepts in (False, True, False):
        yield do("ebookLead", "success", ebookId="{book}", acceptsMarketing=accepts, **reader)
        yield own("GET", "contacts?search=reader", save="reader=data.0.id")
    yield own("GET", "contacts?limit=100")
    yield own("GET", "activities/entity/{reader}")
    yield own("GET", "activities?limit=5")


def _modals() -> Iterator[Call]:
    body = {"storeId": "{shop}", "title": "10% off", "prefix": "WELCOME", "discountPercentage": 10}
    for wrong in (
        {"discountPercentage": None}, {"discountValue": 1}, {"validDays": 0}, {"validDays": 366},
        {"prefix": "WEL COME"}, {"prefix": "x" * 41}, {"storeId": NOWHERE},
    ):  # fmt: skip
        yield own("POST", "discount-modals", {**body, **wrong})
    yield documented("discountModal")
    yield own("POST", "discount-modals", {**body, "validDays": 5}, "modal")
    yield documented("discountModal")
    yield documented("saveDiscountModalUserData", "m1", "code=data.saveDiscountModalUserData."
                     "couponCode", discountModalId="{modal-global}")  # fmt: skip
    save = "saveDiscountModalUserData"
    for email in ("MARIA@example.com", "nobody@example.com", "none", ""):
        yield do(save, "couponCode success", "m2", discountModalId="{modal}", email=email)
    yield do(save, "couponCode", "m2", discountModalId="{modal}", email="a@b.co", phone="call me")
    for modal in (NOWHERE, "x", "{shop-global}"):
        yield do(save, "couponCode", "m2", discountModalId=modal, email="a@example.com")
    yield own("GET", "coupons?modalId={modal}")
    yield cart("AddProduct", "m1", productId="{beans-global}")
    yield cart("ApplyCoupon", "m1", code="{code}")
    yield own("PUT", "discount-modals/{modal}", {"title": "15% off", "discountPercentage": 15})
    yield own("GET", "discount-modals?search=OFF")
    yield own("DELETE", "discount-modals/{modal}")
    yield documented("discountModal")
    # A coupon that is out stays good.
    yield own("GET", "coupons?modalId={modal}")
    yield own("GET", "contacts?tag=discount-modal")


def _ends() -> Iterator[Call]:
    yield documented("clientLogout", "maria")
    yield documented("clientLogin", "maria")
    sent = {"email": "maria@example.com", "password": "battery staple"}
    yield do("clientLogin", "token", "maria", **sent)
    yield documented("clientDeleteAccount", "maria")
    yield do("clientDeleteAccount", "success", "maria", password="battery staple")
    yield do("clientLogin", "token", "maria", **sent)
    yield own("GET", "clients")
    yield own("GET", "reviews")
    yield own("GET", "orders?search=maria")
    yield own("PUT", "stores/{shop}", {"active": False})
    yield documented("store")
    yield documented("node", productId="{beans-global}")
    yield own("DELETE", "stores/{shop}")
    yield own("GET", "products/{beans}")
    yield own("PUT", "products/{beans}", {"storeId": "{two}"})
    for path in ("coupons", "categories", "discount-modals", "products?limit=2", "ebooks"):
        yield own("GET", path)


@pytest.mark.slow
async def test_every_call_gets_its_recorded_response(tmp_path: Path) -> None:
    await compare(tmp_path, "visits", UNLIMITED, visits)
