-- Circuits of webhooks. After many failures in a row a webhook gets a probe now and then, and
-- nothing else.

-- While the circuit is open: when the next probe is due. Null while it is closed.
alter table lanes add column probe_at bigint;
-- The first failure since the last success, on the due clock: a wall clock that jumps must not
-- disable webhooks.
alter table lanes add column failing_from bigint;
update lanes set failing_from = (select w.failing_since from webhooks w where w.id = webhook_id)
where failing = true;

-- Deliveries that somebody asked for while the circuit was open: they do not wait for a probe. No
-- reference to the webhook: a check of it would wait for its lock.
create table passes (
  delivery_id text /*postgres collate "C"*/ primary key,
  webhook_id text /*postgres collate "C"*/ not null
);
create index passes_webhook on passes (webhook_id);
