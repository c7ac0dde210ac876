"""Which webhooks and owners a reading names when many are behind."""

from outbox.queue.log.backlogs import (
    BEHIND_SECONDS,
    EACH_OWNER,
    MOST_COMPARED,
    MOST_LISTED,
    Backlog,
    Backlogs,
    Behind,
)


def test_the_oldest_are_named_and_no_owner_takes_all_places() -> None:
    behind = Behind()
    for number in range(500):
        behind.put(f"rich-{number}", Backlog("rich", 10, 5_000.0 + number))
    for number in range(30):
        behind.put(f"other-{number}", Backlog(f"owner-{number}", 1_000 + number, 100.0 + number))
    backlogs = behind.backlogs()
    assert len(backlogs.webhooks) == len(backlogs.owners) == MOST_LISTED
    named = [name for name in backlogs.webhooks if name.startswith("rich")]
    assert named == [f"rich-{number}" for number in (499, 498, 497)]
    assert len(named) == EACH_OWNER
    assert "other-29" in backlogs.webhooks
    assert "other-0" not in backlogs.webhooks
    assert backlogs.owners["rich"] == Backlog("rich", 5_000, 5_499.0)
    assert (backlogs.behind, backlogs.largest) == (530, 1_029)
    assert backlogs.rest == 500 * 10 + sum(1_000 + number for number in range(29))


def test_a_webhook_that_is_behind_no_more_is_forgotten() -> None:
    behind = Behind()
    behind.put("w", Backlog("o", 7, BEHIND_SECONDS))
    assert behind.backlogs().largest == 7
    behind.put("w", Backlog("o", 9, BEHIND_SECONDS - 1))
    behind.drop("never there")
    assert behind.backlogs() == Backlogs()


def test_a_reading_compares_a_bounded_number_of_webhooks() -> None:
    behind = Behind()
    for number in range(MOST_COMPARED):
        behind.put(f"w{number}", Backlog(f"o{number}", 1, BEHIND_SECONDS))
    behind.put("last", Backlog("last", 7, 2 * BEHIND_SECONDS))
    reading = behind.backlogs()
    assert reading.behind == MOST_COMPARED + 1
    assert (reading.largest, reading.rest) == (1, MOST_COMPARED + 6)
    assert "last" not in reading.webhooks
    assert "last" not in reading.owners
    behind.drop("w0")
    assert behind.backlogs().largest == 7
