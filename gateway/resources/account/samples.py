"""A sample of each event's `data`, for test events: the fields of the catalogue, made-up values."""

from collections.abc import Mapping
from typing import Any

from gateway import dates
from gateway.catalogue import EVENTS

DAY = 86_400_000_000


def sample(event: str, record_id: str, now: int) -> Mapping[str, Any]:
    """The `data` of a test event: the fields that the event's real ones have, and no other.

    `now` is microseconds UTC. KeyError for a name that is not in the catalogue.
    """
    at = dates.show(now)
    later = dates.show(now + 14 * DAY)
    contact = {"name": "Ana Souza (test)", "email": "ana.souza@example.com",
               "phone": "+55 11 98888-7777", "position": "Head of Purchasing"}  # fmt: skip
    company = {"name": "Padaria Modelo Ltda (test)", "cnpj": "11.222.333/0001-81"}
    deal = {"title": "Yearly supply (test)", "value": 12500.5, "stage": "proposal",
            "status": "open", "probability": 60}  # fmt: skip
    task = {"title": "Call back (test)", "dueDate": later, "priority": "high"}
    invoice = {"number": "TEST-0001", "total": 980.9, "status": "pending", "dueDate": later}
    quote = {"number": "TEST-0001", "total": 980.9, "status": "draft"}
    product = {"name": "Coffee beans 1 kg (test)", "price": 89.9}
    times = {"createdAt": at, "updatedAt": at, "completedAt": at, "paidAt": at}
    values: Mapping[str, Mapping[str, Any]] = {
        "contact": contact, "company": company, "deal": deal, "task": task,
        "invoice": invoice, "quote": quote, "product": product,
    }  # fmt: skip
    every = {"id": record_id} | times | dict(values[event.partition(".")[0]])
    return {name: every[name] for name in EVENTS[event]}
