"""Mails to buyers by a real SMTP server: what they say; each goes out once, and none harms."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gateway.domain import queued_mail
from gateway.domain.contacts import contacts
from gateway.domain.sales import order_mails, order_verbs
from gateway.records.audit import Actor
from gateway.server.upkeep.mailer import Mailer
from outbox.database.transaction import Row, Tx
from outbox.durations import DAY
from tests.support.carts import change, offer, sell
from tests.support.checkouts import (
    ADDRESS,
    PASSWORD,
    RULES,
    bought,
    check_out,
    ordered,
    put,
    see,
    sign_up,
)
from tests.support.mailbox import FROM, Mailbox, bodies, settings
from tests.support.orders import cancel, order_of, pay
from tests.support.shop import Shop

pytestmark = pytest.mark.usefixtures("duties_look_often")
PIX_KEY = "pix@shop.example"
PAGE = "https://www.shop.example/pedido?ref=mail#top"
SUBJECTS = {
    "pt-BR": (
        "Recebemos seu pedido ORD-000001", "Pagamento confirmado: pedido ORD-000001",
        "Recebemos seu pedido ORD-000002", "Pedido ORD-000002 cancelado",
        "Recebemos seu pedido ORD-000003", "O prazo para pagar o pedido ORD-000003 terminou",
    ),
    "en": (
        "We received your order ORD-000001", "Payment confirmed: order ORD-000001",
        "We received your order ORD-000002", "Order ORD-000002 canceled",
        "We received your order ORD-000003", "The time to pay for order ORD-000003 is over",
    ),
}  # fmt: skip


async def set_up(shop: Shop, **values: Any) -> None:
    changed = await shop.owner.put(f"/api/stores/{shop.store['id']}", values)
    assert changed.status == 200, changed.body


async def run(tx: Tx, sql: str, *args: Any) -> None:
    await tx.run(sql, *args)


async def kinds(tx: Tx) -> list[str]:
    """Return what waits or was sent, the oldest first."""
    return [
        row["kind"] for row in await tx.all("select kind from queued_mails order by created_at, id")
    ]


async def rows(tx: Tx) -> list[Row]:
    return await tx.all("select * from queued_mails order by created_at, id")


async def send(shop: Shop, box: Mailbox) -> None:
    """Make all mails due, and send them."""
    await shop.db.write(run, "update queued_mails set due_at = 1 where due_at is not null")
    await Mailer(shop.db, settings(box), lambda *_: None).run_once()


async def expire(shop: Shop, order: Any) -> None:
    await shop.db.write(run, "update orders set expires_at = 1 where number = $1", order["number"])
    # The server's own duty may be first.
    await shop.db.write(order_verbs.expire, 1)
    assert (await rest_order(shop, order))["status"] == "expired"


async def rest_order(shop: Shop, order: Any) -> Any:
    [found] = (await shop.owner.get(f"/api/orders?number={order['number']}")).body["data"]
    return await order_of(shop.owner, found["id"])


@pytest.mark.parametrize("language", ["pt-BR", "en"])
async def test_each_step_of_an_order_is_a_mail(posting: Shop, box: Mailbox, language: str) -> None:
    await set_up(posting, language=language, pixKey=PIX_KEY, orderPageUrl=PAGE)
    codes = []
    for place, end in enumerate(("paid", "canceled", "expired")):
        browser, order = await bought(posting, 2)
        await box.next(2 * place + 1)
        codes.append(order["payment"]["pixCode"])
        kept = await rest_order(posting, order)
        if end == "paid":
            assert (await pay(posting.owner, kept)).status == 200
        elif end == "canceled":
            token = order["accessToken"]
            answer = await browser.do(
                "orderCancel", "order { status }", number=order["number"], accessToken=token
            )
            assert answer.data
        else:
            await expire(posting, order)
        await box.next(2 * place + 2)
    assert [mail["Subject"] for mail in box.mails] == [
        f"{subject} - Coffee Shop" for subject in SUBJECTS[language]
    ]
    total = "R$ 60,00" if language == "pt-BR" else "R$60.00"
    for place, mail in enumerate(box.mails):
        assert mail["To"] == "maria@example.com"
        assert mail["From"] == f"Coffee Shop <{FROM}>"
        text, html = bodies(mail)
        number = f"ORD-00000{place // 2 + 1}"
        for words in (text, html.words):
            assert number in words
            assert total in words
            assert "2 × Coffee beans" in words
            assert ("Olá, Maria!" if language == "pt-BR" else "Hello, Maria!") in words
            # Only an order that waits for its payment tells how to pay.
            assert (codes[place // 2] in words) is (place % 2 == 0)
        # The link of each mail shows the order.
        [link] = html.links
        assert link in text.splitlines()
        parts = urlsplit(link)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}#{parts.fragment}" == (
            "https://www.shop.example/pedido#top"
        )
        query = parse_qs(parts.query)
        assert (query["ref"], query["number"]) == (["mail"], [number])
        seen = await see(posting.browser(), number, query["token"][0])
        assert seen["number"] == number
        assert (await see(posting.browser(), number, query["token"][0][::-1])) is None


async def test_a_mail_shows_the_amounts_of_its_order(shop: Shop, box: Mailbox) -> None:
    await set_up(shop, shippingRules=[*RULES, {**RULES[0], "type": "free", "price": 0}])
    await offer(shop, "WELCOME", discountPercentage=10)
    for kind in ("express", "free"):
        browser = shop.browser()
        await put(browser, await sell(shop, 1234.5, stock=9))
        await change(browser, "ApplyCoupon", code="WELCOME")
        await change(browser, "SetShipping", cep=ADDRESS["cep"], type=kind)
        await ordered(browser, address=ADDRESS, paymentMethod="boleto")
    await shop.db.write(run, "update orders set expires_at = $1", 1_827_932_400_000_000)
    await send(shop, box)
    first, second = (bodies(mail)[0] for mail in box.mails)
    assert "Subtotal: R$ 1.234,50\nDesconto: -R$ 123,45\nFrete: R$ 25,50\n" in first
    assert "\nTotal: R$ 1.136,55\n" in first
    assert "\nFrete: Grátis\n" in second
    assert "Forma de pagamento: boleto." in first
    assert "Pague até 04/12/2027 às 12:00 (horário de Brasília)." in first
    # Without a page of the store there is no link.
    assert all(bodies(mail)[1].links == [] for mail in box.mails)
    assert "http" not in first


async def test_an_english_mail_names_the_time_of_the_owner(shop: Shop, box: Mailbox) -> None:
    await set_up(shop, language="en")
    zone = "update users set timezone = 'America/Manaus'"
    await bought(shop)
    await shop.db.write(run, zone)
    await shop.db.write(run, "update orders set expires_at = $1", 1_827_932_400_000_000)
    await send(shop, box)
    assert "Pay by December 4, 2027 at 11:00 (GMT-04:00)." in bodies(box.mails[0])[0]


async def test_a_repeat_sends_no_second_mail(shop: Shop, box: Mailbox) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, 30, stock=9))
    first = await check_out(browser, idempotencyKey="k1")
    again = await check_out(browser, idempotencyKey="k1")
    order = first.data["checkout"]["order"]
    assert order["number"] == again.data["checkout"]["order"]["number"]
    kept = await rest_order(shop, order)
    for _ in range(2):
        assert (await cancel(shop.owner, kept)).status == 200
    assert (await pay(shop.owner, kept)).status == 409
    assert await shop.db.read(kinds) == ["order_received", "order_canceled"]
    for _ in range(2):
        await send(shop, box)
    assert len(box.mails) == 1
    _, order = await bought(shop)
    kept = await rest_order(shop, order)
    assert (await pay(shop.owner, kept)).status == 200
    assert (await pay(shop.owner, kept)).status == 409
    assert (await cancel(shop.owner, kept)).status == 409
    assert (await shop.db.read(kinds))[2:] == ["order_received", "order_paid"]


async def test_what_is_no_news_any_more_is_not_sent(shop: Shop, box: Mailbox) -> None:
    """A Pix code that arrives after the end of the order would still take money."""
    _, order = await bought(shop)
    await expire(shop, order)
    await send(shop, box)
    [mail] = box.mails
    assert "terminou" in mail["Subject"]
    assert not await shop.db.read(queued_mail.any_due)


async def test_an_order_for_nothing_is_confirmed(shop: Shop, box: Mailbox) -> None:
    browser = shop.browser()
    await put(browser, await sell(shop, 30, stock=9))
    await offer(shop, "GIFT", discountPercentage=100)
    await change(browser, "ApplyCoupon", code="GIFT")
    order = await rest_order(shop, await ordered(browser))
    if order["status"] == "pending":
        assert (await pay(shop.owner, order)).status == 200
    await send(shop, box)
    [mail] = box.mails
    assert mail["Subject"] == "Pedido ORD-000001 confirmado - Coffee Shop"
    assert "pagamento" not in bodies(mail)[0]


async def test_a_store_turns_the_mails_off(shop: Shop, box: Mailbox) -> None:
    await bought(shop)
    await set_up(shop, orderMails=False)
    # Those that wait are not sent either.
    await send(shop, box)
    _, order = await bought(shop)
    assert (await pay(shop.owner, await rest_order(shop, order))).status == 200
    await send(shop, box)
    assert box.mails == []
    assert await shop.db.read(kinds) == ["order_received"]


async def test_html_is_escaped(shop: Shop, box: Mailbox) -> None:
    await set_up(
        shop, name="<script>alert(1)</script>\r\nBcc: eve@example.com",
        orderPageUrl='https://shop.example/"><script>x</script>', pixKey=PIX_KEY,
    )  # fmt: skip
    browser = shop.browser()
    await put(browser, await sell(shop, 30, name='<img src=x onerror=y> & "Co"\r\n\u202eevil'))
    await ordered(browser, name="<b>Maria</b> https://evil.example", notes="<i>now</i>")
    await send(shop, box)
    [mail] = box.mails
    text, html = bodies(mail)
    assert html.elements.isdisjoint({"script", "img", "b", "i"})
    assert '1 × <img src=x onerror=y> & "Co" evil' in html.words
    assert len(html.links) == 1
    assert html.links[0].startswith('https://shop.example/"><script>x</script>?number=ORD-000001&')
    assert mail["Bcc"] is None
    assert mail.keys() == [
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version",
        "Content-Type",
    ]  # fmt: skip
    # What a stranger typed into the checkout reaches nobody.
    for words in (text, html.words):
        assert "evil.example" not in words
        assert "now" not in words
        assert "Olá!" in words


@pytest.mark.parametrize(
    "email",
    [
        "=?utf-8?q?a=0D=0ABcc=3A_eve=40evil=2Eexample?=@example.com",
        "=?utf-8?q?eve=40evil=2Eexample=2C?=@example.com",
        "=?utf-8?b?YQ0KQmNjOiBldmVAZXZpbC5leGFtcGxl?=@example.com",
    ],
)
async def test_an_address_that_decodes_to_another_gets_no_mail(
    shop: Shop, box: Mailbox, email: str
) -> None:
    await bought(shop, email=email)
    await send(shop, box)
    assert box.tries == 0
    [row] = await shop.db.read(rows)
    assert (row["due_at"], row["error"]) == (None, "UnsafeAddress")


async def test_a_name_of_a_store_decodes_to_no_header(shop: Shop, box: Mailbox) -> None:
    await set_up(shop, name="Café =?utf-8?q?x=0D=0ABcc=3A_eve=40evil=2Eexample?=")
    await bought(shop)
    await send(shop, box)
    [mail] = box.mails
    assert mail["Bcc"] is None
    assert mail["Subject"].endswith("Café = ?utf-8?q?x=0D=0ABcc=3A_eve=40evil=2Eexample?=")


async def test_a_mail_has_a_bounded_size(shop: Shop, box: Mailbox) -> None:
    await set_up(
        shop, name="<" * 200, pixKey=PIX_KEY, orderPageUrl=f"https://a.example/{'&' * 2000}"
    )
    await bought(shop)
    line = {"description": "<" * 500, "quantity": 1000, "unitPrice": 10, "total": 10}
    items = f"[{','.join([str(line).replace(chr(39), chr(34))] * 200)}]"
    await shop.db.write(run, "update orders set items = $1", items)
    await send(shop, box)
    [mail] = box.mails
    text, _ = bodies(mail)
    assert "e mais 150: R$ 15,00" in text
    # Mail programs cut off what is longer than 102 kB.
    assert len(mail.as_bytes()) < 100_000


@pytest.mark.parametrize("by", ["customer", "owner", "contact"])
async def test_erasing_a_person_removes_the_mails_that_wait(
    shop: Shop, box: Mailbox, by: str
) -> None:
    browser = shop.browser()
    await sign_up(browser)
    product = await sell(shop, 30, stock=9)
    await put(browser, product)
    order = await rest_order(shop, await ordered(browser))
    assert await shop.db.read(kinds) == ["order_received"]
    if by == "customer":
        assert (await browser.do("clientDeleteAccount", "success", password=PASSWORD)).data
    elif by == "owner":
        path = f"/api/clients/{order['customerId']}"
        assert (await shop.owner.delete(path)).status == 200
    else:
        actor = Actor(shop.owner.user_id, "system")
        assert await shop.db.write(contacts.erase, actor, order["contactId"])
    assert await shop.db.read(rows) == []
    # What happens to the order later tells the person nothing.
    assert (await cancel(shop.owner, order)).status == 200
    assert await shop.db.read(rows) == []
    await send(shop, box)
    assert box.mails == []


async def test_a_stranger_cannot_flood_an_address(shop: Shop) -> None:
    """The limit is of the mailbox, however its address is spelled; a payment and other buyers do
    not count."""
    browser = shop.browser()
    product = await sell(shop, 30, stock=None)
    for n in range(order_mails.MOST // 2 + 1):
        await put(browser, product)
        order = await ordered(browser, email=f"Victim+{n}@example.com")
        token = order["accessToken"]
        await browser.do("orderCancel", "order { id }", number=order["number"], accessToken=token)
    assert len(await shop.db.read(rows)) == order_mails.MOST
    _, paid = await bought(shop, email="victim@example.com")
    assert (await pay(shop.owner, await rest_order(shop, paid))).status == 200
    await bought(shop, email="other@example.com")
    assert (await shop.db.read(kinds))[order_mails.MOST :] == ["order_paid", "order_received"]
    # The next day has its own.
    day = "update queued_mails set created_at = created_at - $1"
    await shop.db.write(run, day, DAY + 60_000_000)
    await bought(shop, email="victim@example.com")
    assert len(await shop.db.read(rows)) == order_mails.MOST + 3
