"""The calendar of tasks: days in the owner's zone, few statements, and the lists by due date."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape
from zoneinfo import ZoneInfo

from outbox.database.transaction import Database, Tx
from tests.conformance.test_statements import Sent, fresh
from tests.gateway.console.crm.test_board import asked as asked_of_deals
from tests.gateway.console.crm.test_board import traced
from tests.gateway.console.crm.test_verbs import made
from tests.support.console import Guest, Seen
from tests.support.drain import rows
from tests.support.rest import Person, RestApi

__all__ = ["traced"]
CALENDAR = "/console/tasks/calendar"
INSERT = """
insert into tasks (id, owner_id, version, created_at, title, priority, completed, due_at, due_day)
/*sqlite with recursive number (n) as (
  select 0 union all select n + 1 from number where n < 2999)
select printf('%024x', n), $1, 1, 1, 'Task ' || n, 'high', false,
  case when n < 2000 then $2 else $2 + $3 + n end, n < 2000 from number*/
/*postgres select lpad(to_hex(n), 24, '0'), $1, 1, 1, 'Task ' || n, 'high', false,
  case when n < 2000 then cast($2 as bigint) else cast($2 as bigint) + cast($3 as bigint) + n end,
  n < 2000 from generate_series(0, 2999) as number (n)*/
"""


def days(page: Seen) -> dict[str, list[str]]:
    """Return what each day of the calendar shows, by its ISO date; empty days are left out."""
    found = {}
    for cell in re.findall("<td.*?</td>", page.html, re.S):
        [day] = re.findall("dueDate=([0-9-]+)", cell)
        texts = re.findall("<bdi>([^<]*)</bdi>|more-tasks[^>]*>([^<]*)", cell)
        if texts:
            found[day] = [unescape(title or more) for title, more in texts]
    return found


async def test_days_are_those_of_the_owners_zone(maria: Guest, api: Person) -> None:
    # 02:00 UTC is still the evening before in São Paulo; a bare day is that day everywhere.
    await RestApi(maria.site).move(api, "America/Sao_Paulo")
    await made(api, "tasks", title="evening", dueDate="2026-11-11T02:00:00Z")
    await made(api, "tasks", title="whole day", dueDate="2026-11-11")
    await made(api, "tasks", title="morning <1>", dueDate="2026-11-11T12:30:00Z")
    await made(api, "tasks", title="another month", dueDate="2026-12-31")
    page = await maria.get(f"{CALENDAR}?month=2026-11")
    assert days(page) == {
        "2026-11-10": ["evening"], "2026-11-11": ["whole day", "morning <1>"],
    }  # fmt: skip
    assert re.search(r"9:30.AM</span> <bdi>morning", page.html)
    assert '<h1 id="month">November 2026</h1>' in page.html


async def test_months_follow_one_another_and_nonsense_is_this_month(maria: Guest) -> None:
    page = await maria.get(f"{CALENDAR}?month=2026-12")
    assert page.link("Next month") == f"{CALENDAR}?month=2027-01"
    assert page.link("Previous month") == f"{CALENDAR}?month=2026-11"
    now = datetime.now(ZoneInfo("America/Sao_Paulo"))
    for nonsense in ("2026-13", "0000-01", "9999-12", "x", "2026-1"):
        page = await maria.get(f"{CALENDAR}?month={nonsense}")
        assert page.status == 200
        assert 'aria-current="date"' in page.html
        assert f'<h1 id="month">{now:%B %Y}</h1>' in page.html
    assert (await maria.get(f"{CALENDAR}?month=2999-12")).status == 200
    assert (await maria.get(f"{CALENDAR}?month=1900-01")).status == 200


async def test_a_day_with_many_tasks_shows_a_few(traced: tuple[Guest, list[Sent]]) -> None:
    maria, sent = traced
    at = int(datetime(2026, 11, 11, tzinfo=UTC).timestamp()) * 1_000_000

    async def unit(tx: Tx) -> None:
        [user] = await rows(tx, "select id from users where email = 'maria@example.com'")
        # 2,000 on one whole day, 1,000 at its noon.
        await tx.run(INSERT, user["id"], at, 43_200_000_000)

    database: Database = maria.site.db
    await database.write(unit)
    await fresh(sent)
    page = await maria.get(f"{CALENDAR}?month=2026-11")
    assert len([text for text in sent if re.search(r"\btasks\b", text)]) in (1, 2), sent
    assert days(page) == {
        "2026-11-11": ["Task 0", "Task 1", "Task 2", "Task 3", "+46…"],
    }  # fmt: skip
    assert asked_of_deals(sent) == 0
    assert len(page.html) < 100_000
    listed = await maria.get("/console/tasks/due/day?day=2026-11-11")
    assert "Task 24" in listed.html
    assert "Task 25<" not in listed.html
    further = await maria.get(listed.link("Next page"))
    assert "Task 25<" in further.html
    assert "day=2026-11-11" in further.html


async def test_tasks_by_due_date(maria: Guest, api: Person) -> None:
    today = datetime.fromtimestamp(maria.site.db.clock.wall() / 1e6, UTC)
    await made(api, "tasks", title="long ago", dueDate="2020-01-01")
    await made(api, "tasks", title="soon", dueDate=f"{today + timedelta(days=3):%Y-%m-%d}")
    done = await made(api, "tasks", title="was done", dueDate="2020-01-02")
    await api.post(f"/api/tasks/{done['id']}/complete")
    for view, title in (("upcoming", "soon"), ("overdue", "long ago")):
        where = f"due/{view}"
        page = await maria.get(f"/console/tasks/{where}")
        assert re.findall("<bdi>(long ago|soon|was done)</bdi>", page.html) == [title]
        assert re.search(f'<a href="/console/tasks/{where}" aria-current="true">', page.html)
        [task_id] = re.findall("/console/tasks/([0-9a-f]{24})/complete", page.html)
        assert f'name="list" value="{where}"' in page.html
        after = await maria.submit(
            f"/console/tasks/{task_id}/complete", at=f"/console/tasks/{where}", list=where
        )
        assert after.path == f"/console/tasks/{where}?done=task_complete"
        assert f"<bdi>{title}" not in after.html


async def test_nobody_sees_the_tasks_of_another(maria: Guest, rui: Guest, api: Person) -> None:
    await made(api, "tasks", title="secret", dueDate="2026-11-11")
    await made(api, "tasks", title="secret", dueDate="2020-11-11")
    for path in (
        f"{CALENDAR}?month=2026-11",
        "/console/tasks/due/overdue",
        "/console/tasks/due/day?day=2026-11-11",
    ):
        page = await rui.get(path)
        assert page.status == 200
        assert "secret" not in page.html
    assert (await maria.get("/console/tasks/due/day?day=nonsense")).path == CALENDAR


async def test_what_is_overdue_is_marked_by_a_word(maria: Guest, api: Person) -> None:
    late = await made(api, "tasks", title="Late", dueDate="2020-01-01")
    done = await made(api, "tasks", title="Done", dueDate="2020-01-01")
    await api.post(f"/api/tasks/{done['id']}/complete")
    open_one = await made(api, "tasks", title="Open", dueDate="2999-01-01")
    owed = await made(api, "invoices", total=1, dueDate="2020-01-01")
    paid = await made(api, "invoices", total=1, dueDate="2020-01-01")
    await api.post(f"/api/invoices/{paid['id']}/pay")
    for plural, record, marked in (
        ("tasks", late, 1), ("tasks", done, 0), ("tasks", open_one, 0), ("invoices", owed, 1),
        ("invoices", paid, 0),
    ):  # fmt: skip
        page = await maria.get(f"/console/{plural}/{record['id']}")
        assert page.html.count('is-overdue">Overdue<') == marked, record
    for plural in ("tasks", "invoices"):
        assert (await maria.get(f"/console/{plural}")).html.count('is-overdue">Overdue<') == 1
    assert (await maria.get("/console/tasks/calendar?month=2020-01")).html.count(">Overdue<") == 1
    assert ">Overdue<" not in (await maria.get("/console/tasks/calendar?month=2999-01")).html
