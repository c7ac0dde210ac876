-- additive
-- Webhooks that number their deliveries from 1 without holes: `last` is the last number of each.
-- See outbox.queue.state.sequences.
alter table webhooks add column sequenced boolean not null default false;
create table sequences (
  webhook_id text /*postgres collate "C"*/ primary key
    references webhooks (id) on delete cascade,
  last bigint not null
);

-- The number of a delivery, or, for a replay, the number of the delivery that it repeats.
alter table deliveries add column sequence bigint;
alter table deliveries add column repeats bigint;
create unique index deliveries_sequence on deliveries (webhook_id, sequence)
  where sequence is not null;
-- The feed by number tells a delivery that failed and was replayed as delivered.
create index deliveries_repeated on deliveries (webhook_id, repeats)
  where repeats is not null and state = 'delivered';
