-- Jobs that recover and backfill deliveries: replays of many events, in small transactions, each of
-- which also moves `place`, the seq of the last event that the job has passed. `last_seq` is the
-- last one that existed when the job began. `ends` are the ends to replay, none for a backfill;
-- `names` the events, null for all. `paced_at` is how far the rate has been used up.
create table jobs (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  webhook_id text /*postgres collate "C"*/ not null references webhooks (id) on delete cascade,
  user_id text /*postgres collate "C"*/ not null,
  kind text not null check (kind in ('recover', 'backfill')),
  state text not null check (state in ('running', 'done', 'cancelled', 'expired')),
  ends text not null,
  names text,
  since_at bigint not null,
  until_at bigint not null,
  place bigint not null,
  last_seq bigint not null,
  rate bigint not null,
  total bigint not null,
  made bigint not null default 0,
  refused bigint not null default 0,
  created_at bigint not null,
  paced_at bigint not null,
  finished_at bigint
);
create index jobs_webhook on jobs (webhook_id, id desc);
create index jobs_running on jobs (owner_id, id) where state = 'running';
create index jobs_finished on jobs (finished_at) where finished_at is not null;
