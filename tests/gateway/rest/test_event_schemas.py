"""The published JSON Schemas, and all events in all forms that validate by them."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_http_event

from gateway.domain.catalogue import AVAILABLE_NAMES, EVENTS, FURTHER_NAMES
from gateway.domain.sales import order_verbs
from gateway.domain.webhooks.samples import sample
from gateway.domain.webhooks.settings import CONTRACT
from gateway.rest.document.event_schemas import DIALECT, EVERY, schema
from gateway.rest.document.webhook_entries import ATTRIBUTES, FORMATS
from gateway.server.app_keys import KEYRING
from outbox.database.transaction import Database
from outbox.events import cloud_events, message, thin
from outbox.sending.request import EventForm, Mode, Request, compose, new_secret
from tests.gateway.rest.test_contract import DELIVERING, FIRES, PLURALS, created
from tests.support.drain import add_webhook
from tests.support.node import run_node
from tests.support.orders import cancel, pay, placed, product
from tests.support.receiver import receiver
from tests.support.rest import RestApi
from tests.support.shop import open_shop
from tests.support.site import serving

SITE = "https://crm.example"
NOW = 1_795_271_400_007_000
RECORD = "a" * 24


@cache
def validator(event: str) -> Any:
    return jsonschema_rs.validator_for(dict(schema(event, SITE)), validate_formats=True)


async def test_the_schemas_are_public_and_cached(api: RestApi) -> None:
    listed = (await api.nobody.get("/api/schemas")).body["data"]
    assert [one["event"] for one in listed] == list(EVERY)
    for one in listed:
        path = one["schema"].partition("://")[2].partition("/")[2]
        assert path == f"api/schemas/{one['event']}"
        reply = await api.nobody.get(f"/{path}")
        assert (reply.status, reply.body["$id"]) == (200, one["schema"])
        assert reply.headers["Content-Type"] == "application/schema+json"
        assert reply.body["$schema"] == DIALECT
        jsonschema_rs.meta.validate(reply.body)
    for known in (reply.headers["ETag"], f'"x", W/{reply.headers["ETag"]}', "*"):
        again = await api.nobody.get(f"/{path}", If_None_Match=known)
        assert (again.status, again.text) == (304, "")
    unknown = await api.nobody.get("/api/schemas/contact.exploded")
    assert (unknown.status, unknown.body["code"]) == (404, "not_found")


def test_a_schema_takes_each_form_and_no_other() -> None:
    for event in EVERY:
        data = sample(event, RECORD, NOW)
        whole = json.loads(message(event, NOW, data))
        right: list[Any] = [whole, whole["data"]]
        wrong: list[Any] = [
            {**whole, "event": "other.created"}, {**whole, "more": 1}, {**whole["data"], "more": 1},
            {**whole, "timestamp": "1795271400"}, {**whole["data"], "id": "1"}, {}, [], None,
        ]  # fmt: skip
        if event in EVENTS:
            address = thin(event, NOW // 1_000_000, RECORD, f"{SITE}/api/x/{RECORD}")
            right += (json.loads(address), json.loads(address)["data"])
        assert all(map(validator(event).is_valid, right)), event
        assert not any(map(validator(event).is_valid, wrong)), event


def test_the_documented_attributes_are_those_that_are_sent() -> None:
    facts = cloud_events.Facts(
        RECORD, "contact.created", cloud_events.source_of(SITE, RECORD), RECORD, NOW,
        cloud_events.extensions("1", "1", "j", test=True),
    )  # fmt: skip
    body = json.loads(cloud_events.structured(facts, message("contact.created", NOW, {})))
    assert body.keys() - {"data"} == ATTRIBUTES.keys()
    assert FORMATS.keys() == {CONTRACT, *cloud_events.MODES}


async def test_all_events_in_all_forms_validate_and_the_sdk_reads_them(db: Database) -> None:
    forms: dict[str, dict[str, Any]] = {
        "contract": {}, "thin": {"thin": True}, "cloudevents": {"format": "cloudevents"},
        "cloudevents-binary": {"format": "cloudevents-binary"},
        "cloudevents-thin": {"format": "cloudevents", "thin": True},
    }  # fmt: skip
    async with serving(db, DELIVERING, role="all") as site, receiver() as inbox:
        ana = await RestApi(site).person()
        for name, form in forms.items():
            await add_webhook(
                db,
                site.app[KEYRING],
                f"{inbox.url}/{name}",
                *AVAILABLE_NAMES,
                owner=ana.user_id,
                **form,
            )
        fired = 0
        for event, fire in FIRES.items():
            plural = PLURALS[event.partition(".")[0]]
            record_id = await created(ana, plural)
            if fire is not None:
                await fire(ana, f"/api/{plural}/{record_id}")
            fired += 1 + (fire is not None)
        arrived = {name: await inbox.until(fired, f"/{name}") for name in forms}
    whole: dict[str, Any] = {}
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for name, requests in arrived.items():
        for one in requests:
            event = one.headers["X-Webhook-Event"]
            seen[name].add(event)
            if not name.startswith("cloudevents"):
                body = json.loads(one.body)
                assert validator(event).is_valid(body), (name, event)
                whole[f"{name} {one.headers['X-Webhook-Id']}"] = body["data"]
                continue
            read = from_http_event(HTTPMessage(one.headers, one.body))
            data: Any = read.get_data()
            assert validator(event).is_valid(data), (name, event)
            base = "thin" if "thin" in name else "contract"
            assert data == whole[f"{base} {read.get_id()}"]
            assert read.get_type() == f"carteiro.{event}"
            assert read.get_subject() == data["id"]
            source, dataschema = read.get_source(), str(read.get_dataschema())
            assert source.endswith(f"/owners/{ana.user_id}")
            assert dataschema == f"{source.rpartition('/owners/')[0]}/api/schemas/{event}"
    assert all(events == set(AVAILABLE_NAMES) for events in seen.values())


async def test_the_events_of_orders_validate(api: RestApi) -> None:
    shop = await open_shop(api)
    try:
        coffee = await product(shop.owner)
        for end in (pay, cancel):
            assert (await end(shop.owner, await placed(shop, {coffee: 1}))).status == 200
        await placed(shop, {coffee: 1}, lasts=-60_000_000)
        await shop.db.write(order_verbs.expire, 1)
        events = await api.events()
    finally:
        await shop.close()
    assert {name for name, _ in events} >= set(FURTHER_NAMES)
    for name, data in events:
        assert validator(name).is_valid(data), (name, data)


READ_ALL = """
import { HTTP } from "cloudevents";
const requests = JSON.parse(await new Response(process.stdin).text());
console.log(JSON.stringify(requests.map(({ headers, body }) => {
  const event = HTTP.toEvent({ headers, body });
  event.validate();
  return event.toJSON();
})));
"""


@pytest.mark.proof
def test_the_javascript_sdk_reads_all_events_in_both_modes() -> None:
    requests = [as_request(event, mode) for event in EVERY for mode in cloud_events.MODES]
    found = run_node(READ_ALL, "cloudevents", stdin=json.dumps(requests))
    read = json.loads(found.stdout)
    assert len(read) == 2 * len(EVERY)
    for structured, binary in zip(read[::2], read[1::2], strict=True):
        event = structured["type"].removeprefix("carteiro.")
        assert structured == binary, event
        assert (structured["sequence"], structured["recordversion"]) == ("1".zfill(19), "1")
        assert structured["time"] == "2026-11-21T14:30:00.007Z"
        assert structured["data"] == json.loads(json.dumps(sample(event, RECORD, NOW)))


def as_request(event: str, mode: Mode) -> dict[str, Any]:
    body = message(event, NOW, sample(event, RECORD, NOW))
    request = Request(
        RECORD, event, NOW // 1_000_000, 1, 1, "event", SITE, body, (new_secret(b"s" * 32),),
        sequence=1,
    )  # fmt: skip
    form = EventForm(mode, cloud_events.source_of(SITE, RECORD))
    cloud_events.apply(request, form, RECORD, NOW)
    headers = compose(request, service="Carteiro", now_wall=NOW, span_id="")
    return {"headers": dict(headers), "body": request.body.decode()}
