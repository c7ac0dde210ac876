"""Query a cart of three products, against a bare handler and against graphql-core alone.

The bare handler parses the same request and returns the same bytes. graphql-core executes the same
parsed document on the same values in memory, without HTTP, limits and a database.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from graphql import ExecutionResult, build_schema, execute, parse

from gateway.graphql.ids import global_id
from gateway.graphql.schema import sdl
from tests.benchmarks.children import answer_of, child
from tests.benchmarks.figures import Verdict, median
from tests.benchmarks.load import request
from tests.benchmarks.product import product
from tests.benchmarks.sizes import Size
from tests.benchmarks.staging import Stage

OF_BARE = 0.2
PRODUCTS = 3
EXECUTIONS = 300
HOSTNAME = "shop.example"
QUERY = """
query Cart($hostname: String!) {
  shoppingCart(hostname: $hostname) {
    id
    products { id productId title price quantity images { url } }
    totalPrice
    totalQuantity
    coupon { code discountPercentage discountValue }
    totalShipping
    shippingOptions { type name price deadline }
    totalDiscount
  }
}
"""
ADD = """
mutation Add($input: ShoppingCartAddProductMutationInput!) {
  shoppingCartAddProduct(input: $input) { shoppingCart { totalQuantity } }
}
"""


async def storefront(size: Size) -> Verdict:
    """Measure ratios of cart queries per second."""
    verdict = Verdict("storefront")
    with tempfile.TemporaryDirectory(prefix="carteiro-bench-") as name, ExitStack() as ends:
        folder = Path(name)
        log = folder / "children.log"
        stage = Stage(f"sqlite:///{folder}/carteiro.db", folder)
        await stage.prepare()
        [person] = await stage.people([[]])
        settings = stage.environment(CARTEIRO_LIMITS__STOREFRONT_PER_MINUTE="0")
        api = ends.enter_context(product(settings, folder, "api"))
        cart = _fill(api.port, person.key)
        body = json.dumps({"query": QUERY, "variables": {"hostname": HOSTNAME}}).encode()
        found = _post(api.port, "/graphql", body, X_Cart_Session=cart)
        data = json.loads(found)["data"]
        assert data["shoppingCart"]["totalQuantity"] == PRODUCTS, data
        bare = ends.enter_context(
            child("tests.benchmarks.bare", "fixed", found.decode(), log=log)
        ).json()
        rates: dict[str, list[float]] = {}
        for _ in range(size.runs):
            for side, port, path in (("bare", bare["port"], "/0"), ("cart", api.port, "/graphql")):
                asked = request("POST", path, body, X_Cart_Session=cart)
                done = _load(log, port, asked, size)
                if done["bad"] or done["gone"] or not done["count"]:
                    verdict.broken.append(f"{side}: {done['bad']} bad, {done['gone']} gone")
                rates.setdefault(side, []).append(done["rate"])
            rates.setdefault("core", []).append(_executions(data))
    middle = {side: median(told) for side, told in rates.items()}
    verdict.figures |= {f"{side}_per_s": round(rate) for side, rate in middle.items()}
    verdict.figures["cart_of_core"] = round(middle["cart"] / middle["core"], 3)
    verdict.at_least("cart_of_bare", middle["cart"] / middle["bare"], OF_BARE)
    return verdict


def _executions(data: dict[str, Any]) -> float:
    """Return how often graphql-core alone executes the query per second."""
    schema, document = build_schema(sdl()), parse(QUERY)
    root = {"shoppingCart": data["shoppingCart"]}
    # The first execution checks the schema.
    for count in (1, EXECUTIONS):
        began = time.perf_counter()
        for _ in range(count):
            found = execute(schema, document, root, variable_values={"hostname": HOSTNAME})
            assert isinstance(found, ExecutionResult)
            assert found.data == data
    return EXECUTIONS / (time.perf_counter() - began)


def _fill(port: int, key: str) -> str:
    """Create a store and a cart with products; return the token of the cart."""
    store = json.loads(
        _post(port, "/api/stores", _json(hostname=HOSTNAME, name="Shop"), X_API_Key=key)
    )
    cart = "benchmark-cart"
    for number in range(PRODUCTS):
        made = json.loads(
            _post(
                port, "/api/products",
                _json(name=f"Product {number}", price=10 + number, storeId=store["id"],
                      published=True),
                X_API_Key=key,
            )
        )  # fmt: skip
        wanted = {"hostname": HOSTNAME, "productId": global_id("Product", made["id"])}
        cart = _add(port, cart if number else "", wanted)
    return cart


def _add(port: int, cart: str, wanted: dict[str, Any]) -> str:
    headers = {"X-Cart-Session": cart} if cart else {}
    asked = Request(
        f"http://127.0.0.1:{port}/graphql", data=_json(query=ADD, variables={"input": wanted}),
        headers={"Content-Type": "application/json", **headers},
    )  # fmt: skip
    with urlopen(asked, timeout=30) as answer:
        assert "errors" not in json.loads(answer.read())
        return str(answer.headers["X-Cart-Session"] or cart)


def _load(log: Path, port: int, asked: str, size: Size) -> Any:
    spec = {
        "port": port,
        "connections": size.connections,
        "warm_up": size.warm_up,
        "seconds": size.seconds,
        "expect": 200,
        "requests": [asked],
    }
    return answer_of("tests.benchmarks.load", log, spec)


def _json(**members: Any) -> bytes:
    return json.dumps(members).encode()


def _post(port: int, path: str, body: bytes, **headers: str) -> bytes:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    asked = Request(
        f"http://127.0.0.1:{port}{path}", data=body,
        headers={"Content-Type": "application/json", **sent},
    )  # fmt: skip
    with urlopen(asked, timeout=30) as answer:
        found: bytes = answer.read()
        return found
