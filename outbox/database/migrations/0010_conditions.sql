-- Conditions of webhooks on the data of events: a JSON list of [field, value], joined by and; the
-- value null asks that the field is present.
alter table webhooks add column conditions text;
