-- additive
-- When the last backup was complete, in microseconds UTC: the moment that it holds.
alter table outbox_state add column backed_up_at bigint;
