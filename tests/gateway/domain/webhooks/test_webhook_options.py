"""The texts of a webhook's filter and retry schedule: what is read, and written again."""

import pytest

from gateway.domain.catalogue import EVENT_NAMES
from gateway.domain.webhooks import schedules, typed_conditions
from gateway.domain.webhooks.samples import sample
from outbox.queue.state.policy import DEFAULT_WAITS
from outbox.webhooks.conditions import MOST

NOW = 1_795_271_400_000_000


def test_a_schedule_is_read_and_written() -> None:
    for text, waits, again in (
        ("", None, ""), ("  ", None, ""), ("never", (), "never"), ("Never", (), "never"),
        ("5", (5.0,), "5 s"), ("5s,5m, 5 min ,2h,1d", (5, 300, 300, 7200, 86_400),
                               "5 s, 5 min, 5 min, 2 h, 1 d"),
        ("1.5 h", (5400,), "90 min"), ("1.25", (1.25,), "1.25 s"), ("30d", (2_592_000,), "30 d"),
    ):  # fmt: skip
        assert (schedules.read(text), schedules.written(waits)) == (waits, again)
        assert schedules.read(again) == waits
    assert schedules.read(schedules.written(DEFAULT_WAITS)) == DEFAULT_WAITS
    assert schedules.of_column("[5.0, 2.5]") == "5 s, 2.5 s"
    assert schedules.of_column(None) == schedules.of_column("{") == ""


def test_the_sample_of_each_event_fulfils_its_own_fields() -> None:
    for event in EVENT_NAMES:
        data = sample(event, "0" * 24, NOW)
        lines = [
            f"{name} is present" if isinstance(value, list | dict) else f"{name} = {value}"
            for name, value in data.items() if value is not None
        ]  # fmt: skip
        asked = typed_conditions.read("\n".join(lines[-MOST:]), [event])
        assert len(asked) == min(len(lines), MOST)
        [trial] = typed_conditions.tried(asked, [event], NOW)
        assert not trial.failing
        assert typed_conditions.read(typed_conditions.written(asked), [event]) == asked


@pytest.mark.parametrize(
    ("text", "can", "never"),
    [
        ("status = won", ["deal.updated", "deal.deleted"], ["deal.created"]),
        ("status = open", ["deal.created", "deal.updated", "deal.deleted"], []),
        ("status changed", ["deal.created", "deal.updated"], ["deal.deleted"]),
        ("status = paid", ["invoice.updated", "invoice.paid"], ["invoice.created", "deal.updated"]),
        ("status = accepted", ["quote.updated"], ["quote.created", "invoice.paid"]),
        ("completed = true", ["task.completed", "task.deleted"], ["task.created"]),
        ("priority = high", ["task.completed"], ["deal.updated", "contact.created"]),
        ("priority changed", ["task.completed"], ["deal.updated", "contact.created"]),
    ],
)  # fmt: skip
def test_the_fields_of_the_record_can_match_these_events_alone(
    text: str, can: list[str], never: list[str]
) -> None:
    asked = typed_conditions.read(text, [*can, *never])
    assert typed_conditions.read(typed_conditions.written(asked), can) == asked
    impossible = [
        one.event for one in typed_conditions.tried(asked, [*can, *never], NOW) if one.impossible
    ]
    assert impossible == never


@pytest.mark.parametrize(
    ("text", "event", "says"),
    [
        ("status = wun", "deal.updated", "open, won, lost"),
        ("value = 3", "deal.updated", "Their fields are: .*stage.*status"),
        ("title changed", "deal.updated", "Only a change of these fields .*: stage, status"),
        ("colour changed", "deal.updated", "has the field colour"),
        ("status changed", "deal.deleted", "No selected event can have a change"),
        ("name changed", "contact.updated", "No selected event can have a change"),
        ("completed = maybe", "task.completed", "Send true or false"),
        ("email = a@x.com", "deal.updated", "has the field email"),
        ("paidAt = 2026-12-01", "invoice.paid", "paidAt must be a time, such as 2026-12-01T14:30"),
        ('completedAt = "0001-01-01"', "task.completed", "completedAt must be a time"),
        ("paidAt = 01/12/2026", "invoice.paid", "Send a valid ISO 8601"),
    ],
)
def test_a_condition_on_no_field_of_the_record_is_refused(text: str, event: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        typed_conditions.read(text, [event])


def test_values_are_read_as_events_write_them() -> None:
    events = ["deal.created", "task.created", "company.created"]

    def value(line: str) -> str | None:
        [one] = typed_conditions.read(line, events)
        return one.value

    assert value("value=007.50") == "7.5"
    assert value("value = 999999999999.99") == "999999999999.99"
    assert value("dueDate = 2026-12-15T10:00:00-03:00") == "2026-12-15T13:00:00.000Z"
    assert value('name = " spaced "') == " spaced "
    assert value("name = a = b") == "a = b"
    assert value("name IS Present") is None


ODD = (
    "x", "1", "-1", "1.5", "2026-12-01", "2026-12-01T10:00:00Z", "0001-01-01", "2026-02-30",
    "9999-12-31T23:59:59-23:59", "true", '"x"', '""', '"\\u0000"', "a" * 24, "a@b.co", "R$",
    "+5511988887777", "999999999999.99", "1e5", "9" * 17, "\N{SLIGHTLY SMILING FACE}", "=", '"',
    "null",
)  # fmt: skip
"""What people may write after =, whatever the field is."""


@pytest.mark.parametrize("event", EVENT_NAMES)
def test_a_value_of_each_field_is_read_or_its_fault_is_told(event: str) -> None:
    for name in typed_conditions.fields_of([event]):
        for text in ODD:
            try:
                asked = typed_conditions.read(f"{name} = {text}", [event])
            except ValueError:
                continue
            assert typed_conditions.read(typed_conditions.written(asked), [event]) == asked
            assert len(typed_conditions.tried(asked, [event], NOW)) == 1


def test_what_people_choose_from_can_be_typed() -> None:
    for noun, choices in typed_conditions.choices().items():
        events = [name for name in EVENT_NAMES if name.startswith(f"{noun}.")]
        for choice in choices:
            assert typed_conditions.read(typed_conditions.one_line(choice), events), choice


def test_a_webhook_has_a_limited_number_of_conditions() -> None:
    names = typed_conditions.fields_of(EVENT_NAMES)[: MOST + 1]
    text = "\n".join(f"{name} is present" for name in names)
    with pytest.raises(ValueError, match=f"at most {MOST} conditions"):
        typed_conditions.read(text, EVENT_NAMES)
    assert len(typed_conditions.read(text.rpartition("\n")[0], EVENT_NAMES)) == MOST
