"""Orders in the console: paid and canceled one by one and many at once, and the payment secret."""

from decimal import Decimal
from typing import Any

import pixcanvas
import pytest

from outbox.database.transaction import Row, Tx
from tests.support import orders
from tests.support.checkouts import bought, see
from tests.support.console import Guest
from tests.support.provider import Adapter
from tests.support.rest import RestApi
from tests.support.shop import Shop

ORDERS = "/console/orders"
SELECTED = f"{ORDERS}/selected"


async def statuses(shop: Shop, made: list[dict[str, Any]]) -> list[str]:
    return [(await orders.order_of(shop.owner, one["id"]))["status"] for one in made]


async def test_a_purchase_is_paid_in_the_console(maria: Guest) -> None:
    shop = await shop_of(maria)
    pix = {"pixKey": "pix@shop.example"}
    assert (await shop.owner.put(f"/api/stores/{shop.store['id']}", pix)).status == 200
    buyer, bought_order = await bought(shop, 2)
    code = pixcanvas.parse_pix(bought_order["payment"]["pixCode"])
    assert (code.amount, code.txid) == (Decimal(60), "ORD000001")
    [made] = (await shop.owner.get("/api/orders")).body["data"]
    page = await maria.get(f"{ORDERS}/{made['id']}")
    asked = await maria.get(page.link("Mark paid"))
    assert "R$60.00" in asked.html
    assert '<option value="pix" selected>Pix</option>' in asked.html
    before = len(await shop.api.events())
    page = await maria.submit(asked.path, method="transfer", reference=" E1823 <x> ")
    assert page.path == f"{ORDERS}/{made['id']}?done=order_paid"
    assert '<span class="badge is-paid">Paid</span>' in page.html
    assert "Mark paid" not in page.html
    assert "Cancel order" not in page.html
    invoice = (await shop.owner.get(f"/api/invoices/{made['invoiceId']}")).body
    assert (invoice["status"], invoice["method"], invoice["reference"]) == (
        "paid", "transfer", "E1823 <x>",
    )  # fmt: skip
    names = [name for name, _ in (await shop.api.events())[before:]]
    assert sorted(names) == ["deal.updated", "invoice.paid", "order.paid"]
    seen = await see(buyer, bought_order["number"], bought_order["accessToken"])
    assert (seen["status"], seen["payment"]["pixCode"]) == ("paid", None)
    # A second tab changes nothing.
    again = await maria.submit(asked.path, method="pix", reference="other")
    assert again.path == f"{ORDERS}/{made['id']}?done=order_paid"
    assert len(await shop.api.events()) == before + 3
    await shop.close()


async def test_a_canceled_order_is_not_paid(maria: Guest) -> None:
    shop = await shop_of(maria)
    made = await order(shop)
    path = f"{ORDERS}/{made['id']}/pay"
    form = await maria.get(path)
    assert (await orders.cancel(shop.owner, made)).status == 200
    refused = await maria.post(path, [("csrf_token", form.csrf)])
    assert refused.status == 409
    assert "cannot be marked as paid" in refused.html


async def test_a_payment_with_a_fault(maria: Guest) -> None:
    shop = await shop_of(maria)
    made = await order(shop)
    for field, text in (("method", "gold"), ("reference", "a\x00b"), ("reference", "r" * 201)):
        typed: dict[str, Any] = {field: text}
        page = await maria.submit(f"{ORDERS}/{made['id']}/pay", **typed)
        assert (page.status, f'id="{field}-fault"' in page.html) == (400, True)
    assert (await orders.order_of(shop.owner, made["id"]))["status"] == "pending"


async def test_pages_of_selected_orders_keep_their_place(maria: Guest) -> None:
    shop = await shop_of(maria)
    product = await orders.product(shop.owner, stock=40, storeId=shop.store["id"])
    made = [await orders.placed(shop, {product: 1}) for _ in range(27)]
    first = await maria.get(f"{ORDERS}?status=pending&select=1")
    assert [one["number"] in first.html for one in (made[0], made[1], made[2], made[-1])] == [
        False, False, True, True,
    ]  # fmt: skip
    second = await maria.get(first.link("Next page"))
    assert made[0]["number"] in second.html
    assert 'name="order"' in second.html


@pytest.mark.parametrize(("act", "status"), [("pay", "paid"), ("cancel", "canceled")])
async def test_many_orders_at_once(maria: Guest, act: str, status: str) -> None:
    shop = await shop_of(maria)
    made = [await order(shop) for _ in range(3)]
    chosen, rest = made[:2], made[2]
    listed = await maria.get(ORDERS)
    page = await maria.get(listed.link("Select orders"))
    assert "Select orders" in page.html
    ids = [one["id"] for one in chosen]
    back = "status=pending&select=1"
    asked = await maria.submit(
        SELECTED, at=f"{ORDERS}?{back}", act=act, list=back, order=[*ids, ids[0]]
    )
    assert asked.status == 200
    assert "R$141.00" in asked.html
    assert [one["number"] in asked.html for one in made] == [True, True, False]
    assert await statuses(shop, made) == ["pending"] * 3
    # One of them ends while the owner looks at the question.
    assert (await orders.cancel(shop.owner, chosen[1])).status == 200
    fields = [("csrf_token", asked.csrf), ("confirmed", "yes"), ("act", act), ("list", back)]
    done = await maria.post(SELECTED, [*fields, *(("order", one) for one in ids)])
    assert done.path.startswith(f"{ORDERS}?{back}&done=orders_{status}")
    assert await statuses(shop, made) == [status, "canceled", "pending"]
    assert ("stay as they were" in done.html) == (act == "pay")
    assert rest["number"] in done.html


async def test_a_selection_with_a_fault(maria: Guest, rui: Guest) -> None:
    shop = await shop_of(maria)
    made = await order(shop)
    page = await maria.submit(SELECTED, at=ORDERS + "?select=1", act="pay", list="status=pending")
    assert "Select at least one order." in page.html
    for act, order_id in (("give", made["id"]), ("pay", "x"), ("pay", "0" * 24)):
        page = await maria.submit(
            SELECTED, at=ORDERS + "?select=1", act=act, order=[made["id"], order_id], confirmed="y"
        )
        assert page.status == 404, (act, order_id)
    many = [f"{one:024x}" for one in range(101)]
    page = await maria.submit(SELECTED, at=ORDERS + "?select=1", act="pay", order=many)
    assert page.status == 400
    # Of somebody else, and without the token.
    page = await rui.submit(
        SELECTED, at="/console/keys", act="pay", order=made["id"], confirmed="y"
    )
    assert page.status == 404
    fields = [("csrf_token", "0" * 64), ("act", "pay"), ("confirmed", "y"), ("order", made["id"])]
    assert (await maria.post(SELECTED, fields)).status == 403
    # The way back is a list of ours, whatever the form says.
    page = await maria.submit(
        SELECTED, at=ORDERS + "?select=1", act="pay", list="status=paid\r\nX: y", order=made["id"],
        confirmed="y", follow=False,
    )  # fmt: skip
    assert page.headers["Location"] == f"{ORDERS}?done=orders_paid"


async def test_only_the_owner_pays_and_rotates(maria: Guest, rui: Guest, nobody: Guest) -> None:
    shop = await shop_of(maria)
    made = await order(shop)
    store = f"/console/stores/{shop.store['id']}/payment-secret"
    for path in (f"{ORDERS}/{made['id']}/pay", f"{ORDERS}/{made['id']}/settle", store):
        assert (await rui.submit(path, at="/console/keys")).status == 403
        assert (await maria.post(path, [("csrf_token", "0" * 64)])).status == 403
        assert (await nobody.post(path, [("csrf_token", "0" * 64)])).path.startswith(
            "/console/sign-in"
        )
    for path in (f"{store}/activate", f"{store}/cancel"):
        assert (await rui.submit(path, at="/console/keys")).status == 403
        assert (await maria.submit(path, at=store)).status == 409
    assert (await rui.get(store)).status == 403
    assert (await orders.order_of(shop.owner, made["id"]))["status"] == "pending"


async def test_a_late_payment_is_seen_and_settled(maria: Guest) -> None:
    shop = await shop_of(maria)
    made = await order(shop)
    page = await maria.submit(f"/console/stores/{shop.store['id']}/payment-secret")
    provider = Adapter(shop, page.test_id("payment-secret") or "")
    assert (await orders.cancel(shop.owner, made)).status == 200
    assert (await provider.report(made["number"], 70.5, "ch_<b>")).body["late"] is True
    assert '<span class="tag">Late payment</span>' in (await maria.get(ORDERS)).html
    late = (await maria.get(ORDERS)).link("Late payment")
    assert made["number"] in (await maria.get(late)).html
    path = f"{ORDERS}/{made['id']}"
    page = await maria.get(path)
    for text in ("Paid after the order had ended", "R$70.50", "ch_&lt;b&gt;"):
        assert text in page.html
    page = await maria.submit(f"{path}/settle", at=path)
    assert "Marked as handled." in page.html
    assert "Paid after the order had ended" not in page.html
    after = await orders.order_of(shop.owner, made["id"])
    assert "latePaymentAt" not in after
    assert "Nothing found" in (await maria.get(late)).html
    invoice = (await shop.owner.get(f"/api/invoices/{made['invoiceId']}")).body
    assert [one["reference"] for one in invoice["latePayments"]] == ["ch_<b>"]
    again = await maria.submit(f"{path}/settle", at=path)
    assert again.status == 200


async def test_the_payment_secret_is_shown_once_and_replaced(maria: Guest) -> None:
    shop = await shop_of(maria)
    path = f"/console/stores/{shop.store['id']}/payment-secret"
    assert (await maria.get(f"/console/stores/{shop.store['id']}")).link("Payment secret") == path

    async def new() -> str:
        page = await maria.submit(path)
        secret = page.test_id("payment-secret")
        assert secret is not None
        assert secret.startswith("whsec_")
        assert secret not in (await maria.get(path)).html
        return secret

    async def accepted(secret: str) -> bool:
        # The signature is checked before the order is looked up.
        return (await Adapter(shop, secret).report("ORD-000009", 1)).status == 404

    first = await new()
    second = await new()
    assert [await accepted(one) for one in (first, second)] == [True, True]
    fields = [("csrf_token", (await maria.get(path)).csrf)]
    assert (await maria.post(path, fields)).status == 409
    assert "accepted until" in (await maria.submit(f"{path}/activate", at=path)).html
    third = await new()
    assert [await accepted(one) for one in (first, second, third)] == [True, True, True]
    await maria.submit(f"{path}/cancel", at=path)
    assert [await accepted(one) for one in (first, second, third)] == [True, True, False]
    fourth = await new()
    await maria.submit(f"{path}/activate", at=path)
    assert [await accepted(one) for one in (first, second, fourth)] == [False, True, True]


async def shop_of(guest: Guest, hostname: str = "shop.example") -> Shop:
    """Return a store of Maria."""

    async def unit(tx: Tx) -> Row:
        row = await tx.one("select id from users where email = 'maria@example.com'")
        assert row is not None
        return row

    api = RestApi(guest.site)
    owner = await api.key_of((await guest.site.db.read(unit))["id"])
    store = await owner.post("/api/stores", {"hostname": hostname, "name": "Coffee Shop"})
    assert store.status == 201, store.text
    return Shop(api, owner, store.body)


async def order(shop: Shop, quantity: int = 2) -> dict[str, Any]:
    product = await orders.product(shop.owner, storeId=shop.store["id"], name="Beans <1 kg>")
    return await orders.placed(shop, {product: quantity}, shipping=1550, discount=500)
