"""The first page: what waits today, each figure a link to its list, within a bound of rows."""

import re
from datetime import datetime, timedelta
from html import unescape
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.reports import today
from outbox.database.transaction import Tx
from tests.gateway.console.crm.test_verbs import made
from tests.support.console import Guest, Seen
from tests.support.drain import rows
from tests.support.rest import Person

ORDER = """
insert into orders (id, owner_id, version, created_at, number, status, store_id, items, subtotal,
  shipping, discount, total, currency, name, email, payment_method, folded, expires_at,
  late_payment_at)
select $1, $2, 1, $3, $4, $5, id, '[]', 100, 0, 0, 100, 'BRL', 'Bia', 'b@example.com', 'pix', '',
  $6, $7 from stores where owner_id = $2
"""


def figures(page: Seen) -> dict[str, tuple[str, str]]:
    """Return the text and the address of each link of the page that shows a figure."""
    found = re.findall(r'<a id="today-(\w+)"[^>]*href="([^"]*)"[^>]*>([^<]*)</a>', page.html)
    return {name: (unescape(text).replace("\xa0", " "), unescape(to)) for name, to, text in found}


async def test_an_empty_account_sees_how_to_begin(maria: Guest) -> None:
    page = await maria.get("/console")
    assert {name: to for name, (_, to) in figures(page).items()} == {
        "import": "/console/import/contacts", "store": "/console/stores/new",
    }  # fmt: skip
    for path in ("/console/import/contacts", "/console/stores/new"):
        assert (await maria.get(path)).status == 200


async def test_each_figure_is_a_link_to_what_it_counts(
    maria: Guest, api: Person, rui: Guest, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The day of the account, which is not that of UTC for three hours of each.
    zone = ZoneInfo((await api.get("/api/me")).body["timezone"])
    now = datetime.fromtimestamp(maria.site.db.clock.wall() / 1e6, zone)
    day = f"{now:%Y-%m-%d}"
    bia = await made(api, "contacts", name="Bia")
    for title, due in (("a", day), ("b", day), ("old", "2020-01-01"), ("none", None)):
        await made(api, "tasks", title=title, dueDate=due)
    done = await made(api, "tasks", title="done", dueDate="2020-01-01")
    await api.post(f"/api/tasks/{done['id']}/complete")
    for stage, value in (("lead", 10.5), ("lead", 1), ("x & y", 2), (None, 3)):
        await made(api, "deals", title="d", stage=stage, value=value)
    for due in ("2020-01-01", f"{now + timedelta(days=9):%Y-%m-%d}"):
        items = [{"description": "Work", "quantity": 1, "unitPrice": 1500}]
        await made(api, "invoices", contactId=bia["id"], dueDate=due, items=items)
    page = await maria.get("/console")
    assert figures(page) == {
        "tasks": ("2", f"/console/tasks/due/day?day={day}"),
        "overdue": ("1 overdue", "/console/tasks/due/overdue"),
        "deals": ("R$16.50", "/console/deals/board"),
        "invoices": ("R$3,000.00", "/console/invoices?status=pending"),
        "owed": ("1 overdue", "/console/invoices?overdue=true"),
        "contacts": ("1", "/console/contacts"),
        "store": ("Open a store", "/console/stores/new"),
    }
    stages = re.findall(r'href="(/console/deals\?[^"]*)"><bdi>([^<]*)', page.html)
    assert [unescape(name) for _, name in stages] == ["lead", "x & y"]
    assert "2 deals" in page.html
    assert (await maria.get(unescape(stages[1][0]))).html.count("/console/deals/0") > 0
    assert "import" in figures(await rui.get("/console"))
    # A figure that had to stop says so.
    monkeypatch.setattr(today, "MOST", 2)
    page = await maria.get("/console")
    assert figures(page)["invoices"][0] == "R$3,000.00+"


async def test_orders_are_counted_by_what_is_to_do(maria: Guest, api: Person) -> None:
    await made(api, "stores", name="Loja", hostname="loja.example")
    db, owner = maria.site.db, api.user_id

    async def place(tx: Tx) -> None:
        age = 8 * 86_400_000_000
        for number, (status, created, expires, late) in enumerate((
            ("pending", tx.now, tx.now + age, None), ("pending", tx.now, tx.now + age, None),
            ("paid", tx.now, tx.now + age, None), ("paid", tx.now - age, tx.now, None),
            ("expired", tx.now - age, tx.now - age, tx.now),
        )):  # fmt: skip
            await tx.run(ORDER, tx.new_id(), owner, created, f"ORD-{number}", status, expires, late)

    await db.write(place)
    assert len(await db.read(rows, "select 1 as one from orders")) == 5
    found = figures(await maria.get("/console"))
    assert found["orders"] == ("2", "/console/orders?status=pending")
    assert found["paid"] == ("1 paid in the last 7 days", "/console/orders?status=paid")
    assert found["late"] == ("1 paid after its end", "/console/orders?latePayment=true")
    assert "store" not in found
