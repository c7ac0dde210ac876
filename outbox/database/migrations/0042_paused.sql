-- additive
-- Since when a copy that was restored to be looked at is paused, in microseconds UTC. Until it is
-- resumed, no duty runs whose work others notice. Null: it is not paused.
alter table outbox_state add column paused_at bigint;
