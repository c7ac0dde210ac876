-- additive
-- Fields of the event's record that conditions of webhooks may use beside `data`, as they were after
-- the write: a JSON list of [name, value, whether the write changed it]. See
-- outbox.events.record_fields.
alter table events add column record_fields text;
