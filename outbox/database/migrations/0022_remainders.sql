-- additive
-- Owners of whom fan-out has numbered more events than it has fanned out: events of records from
-- `seq` on are left, the first of them for the webhooks behind `reached_at` and `reached` alone.
-- `made` counts the deliveries that this first event has already. See outbox.queue.remainders.
create table remainders (
  owner_id text /*postgres collate "C"*/ primary key,
  seq bigint not null,
  reached_at bigint not null,
  reached text /*postgres collate "C"*/ not null,
  made bigint not null,
  turned_at bigint not null
);
create index remainders_turns on remainders (turned_at);
