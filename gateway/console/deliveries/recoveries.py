"""The pages of jobs that recover or backfill deliveries: form, confirmation, progress, cancel."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, get_args
from urllib.parse import urlencode

from aiohttp import web

from gateway.console.layout import pages, polling, templates, typed_times
from gateway.console.layout.guard import Form, SignedIn, parse_form
from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import recoveries
from gateway.records.errors import Refusal
from gateway.records.values import dates
from gateway.server.app_keys import DB, REQUEST_ID
from gateway.server.installation import WEBHOOK_RULES
from gateway.server.telemetry.logs import logger
from gateway.server.telemetry.metrics import METRICS
from outbox.durations import DAY, MINUTE
from outbox.queue.replays.jobs import FASTEST, SLOWEST, Draft
from outbox.states import End

ENDS: tuple[End, ...] = ("exhausted", "gone", "dead", "cancelled", "delivered")
USUAL_ENDS: tuple[End, ...] = ("exhausted", "gone", "dead")
USUAL_RATE = 50
assert set(ENDS) == set(get_args(End))


@dataclass(frozen=True, slots=True)
class JobForm:
    """What was typed, as text, with its faults; `draft` and `sent` are set when there are none."""

    backfill: bool
    typed: Mapping[str, Any]
    faults: Mapping[str, str]
    draft: Draft | None
    sent: Mapping[str, Any] | None = None
    """The same in texts that mean the same moments later."""

    @property
    def question(self) -> str:
        """What must be confirmed: `twice` when receivers get events that they accepted."""
        return "twice" if self.draft and "delivered" in self.draft.ends else "count"

    @property
    def address(self) -> str:
        """The query of the form with what was typed."""
        return urlencode({"kind": "backfill" if self.backfill else "recover", **self.typed}, True)


async def show(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show the form of a new job, and the webhook's latest jobs."""
    now = request.app[DB].clock.wall()
    backfill, zone = request.query.get("kind") == "backfill", visitor.actor.zone
    order = fresh(backfill, now, zone)
    if "since" in request.query:
        # The page that asks for confirmation leads back to what was typed.
        order = replace(
            read(parse_form(request.rel_url.raw_query_string.encode()), now, zone), faults={}
        )
    return await _form(request, visitor, order)


async def start(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Tell how many deliveries the job will make, and start it after the confirmation."""
    db, webhook_id = request.app[DB], pages.id_of(request)
    order = read(form, db.clock.wall(), visitor.actor.zone)
    if order.draft is None:
        return await _form(request, visitor, order)
    # A count may read many rows, so it takes the turn of its owner.
    count = await db.scan(
        visitor.actor.owner_id, recoveries.count, visitor.actor, webhook_id, order.draft
    )
    if form.text("confirmed") != order.question:
        context = {
            "webhook": count.webhook, "order": order, "count": count, "draft": order.draft,
            "seconds": -(-count.total // order.draft.rate),
        }  # fmt: skip
        return templates.render(request, visitor, "recover_confirm.html", context)
    job_id = await db.write(recoveries.start, visitor.actor, webhook_id, order.draft, count.total)
    logger().info(
        "job_started", request_id=request[REQUEST_ID], job=job_id, webhook_id=webhook_id,
        kind="backfill" if order.backfill else "recover", total=count.total,
    )  # fmt: skip
    return pages.to(f"/console/jobs/{job_id}", "job_started")


async def show_job(request: web.Request, visitor: SignedIn) -> web.StreamResponse:
    """Show a job and how far it is; htmx polls while it runs."""
    job, webhook = await request.app[DB].read(recoveries.one, visitor.actor, pages.id_of(request))
    past = job.made + job.refused
    context = {
        "job": job, "webhook": webhook, "past": past, "total": max(job.total, past),
        "waits": job.state == "running" and webhook.state != "active",
    }  # fmt: skip
    return polling.live(request, visitor, "job.html", "parts/job.html", context)


async def cancel(request: web.Request, visitor: SignedIn, form: Form) -> web.StreamResponse:
    """Cancel a job; the deliveries that it has made stay."""
    job_id = pages.id_of(request)
    ended = await request.app[DB].write(recoveries.cancel, visitor.actor, job_id)
    if ended is None:
        raise Refusal("conflict", "error.job_ended")
    request.app[METRICS].job_ended(ended.kind, "cancelled")
    return pages.to(f"/console/jobs/{job_id}", "job_cancelled")


async def _form(request: web.Request, visitor: SignedIn, order: JobForm) -> web.StreamResponse:
    webhook, latest = await request.app[DB].read(
        recoveries.listed, visitor.actor, pages.id_of(request)
    )
    context = {
        "webhook": webhook, "jobs": latest, "order": order, "typed": order.typed,
        "local": lambda name: typed_times.shown(order.typed[name], visitor.actor.zone),
        "faults": order.faults, "ends": ENDS, "least": SLOWEST,
        "most": FASTEST, "zone": visitor.actor.zone,
        "days": request.app[WEBHOOK_RULES].deliveries_days,
    }  # fmt: skip
    return templates.render(
        request, visitor, "recover.html", context, status=400 if order.faults else 200
    )


def fresh(backfill: bool, now: int, zone: str) -> JobForm:
    """Return the form before anything is typed: the last day."""
    typed = {
        "ends": USUAL_ENDS, "names": (), "rate": str(USUAL_RATE),
        "since": typed_times.local((now - DAY) // MINUTE * MINUTE, zone), "until": "",
    }  # fmt: skip
    return JobForm(backfill, typed, {}, None)


def read(form: Form, now: int, zone: str) -> JobForm:
    """Read the form; times without an offset are in the time zone `zone`."""
    backfill = form.text("kind") == "backfill"
    typed = {
        "ends": tuple(end for end in ENDS if end in form.all("ends")),
        "names": tuple(name for name in EVENT_NAMES if name in form.all("names")),
        "since": form.text("since").strip(),
        "until": form.text("until").strip(),
        "rate": form.text("rate").strip(),
    }
    faults = {}
    since = typed_times.typed(str(typed["since"]), zone)
    until = typed_times.typed(str(typed["until"]), zone, ends=True) if typed["until"] else now
    rate = recoveries.rate_of(str(typed["rate"]))
    if since is None:
        faults["since"] = "recover.fault.time"
    if until is None:
        faults["until"] = "recover.fault.time"
    if since is not None and until is not None and since >= min(until, now):
        faults["since"] = "recover.fault.order"
    if rate is None:
        faults["rate"] = "recover.fault.rate"
    if not backfill and not typed["ends"]:
        faults["ends"] = "recover.fault.ends"
    if faults or since is None or until is None or rate is None:
        return JobForm(backfill, typed, faults, None)
    ends = () if backfill else tuple(end for end in ENDS if end in form.all("ends"))
    names = tuple(name for name in EVENT_NAMES if name in form.all("names")) or None
    # The page that asks for confirmation sends these back, so both mean the same moments.
    sent = {**typed, "since": dates.show(since), "until": dates.show(min(until, now))}
    draft = Draft(ends, names, since, min(until, now), rate)
    return JobForm(backfill, typed, {}, draft, sent)
