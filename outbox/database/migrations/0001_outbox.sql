-- The outbox and everything a delivery passes through.
-- Times are BIGINT microseconds: *_at on the wall clock, next_at/due_at/*_until on the due clock.

/*postgres
create function due_now() returns bigint language sql stable
  as $$ select cast(extract(epoch from statement_timestamp()) * 1000000 as bigint) $$;
*/

-- One row: the last seq given out, and on SQLite the furthest the due clock has been.
create table outbox_state (
  id bigint primary key check (id = 1),
  seq bigint not null,
  due_mark bigint not null
);
insert into outbox_state (id, seq, due_mark) values (1, 0, 0);

create table events (
  pos /*sqlite integer primary key autoincrement*/ /*postgres bigint generated always as identity primary key*/,
  id text /*postgres collate "C"*/ not null unique,
  seq bigint unique,
  owner_id text /*postgres collate "C"*/ not null,
  name text not null,
  record_id text not null,
  record_version bigint not null,
  webhook_id text,
  occurred_at bigint not null,
  request_id text,
  traceparent text,
  body bytea,
  body_digest text not null,
  erased_at bigint
);
-- What fan-out has not seen yet; SQLite walks the unique index on seq for it, nulls by pos.
/*postgres
create index events_unseen on events (pos) where seq is null;
*/
create index events_feed on events (owner_id, seq) where webhook_id is null and seq is not null;
create index events_record on events (owner_id, record_id, pos);

create table webhooks (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  url text not null,
  events text not null,
  description text,
  state text not null check (state in ('active', 'paused', 'disabled')),
  disabled_reason text,
  ordered boolean not null,
  timeout_ms bigint,
  schedule text,
  headers bytea,
  secret bytea not null,
  staged_secret bytea,
  old_secret bytea,
  old_secret_until bigint,
  since_pos bigint not null,
  created_at bigint not null,
  updated_at bigint not null,
  last_success_at bigint,
  failing_since bigint,
  failures bigint not null default 0,
  last_outcome text,
  last_status bigint,
  last_attempt_at bigint,
  circuit text not null default 'closed' check (circuit in ('closed', 'open', 'half_open')),
  circuit_opened_at bigint,
  circuit_backoff bigint
);
create index webhooks_owner on webhooks (owner_id, created_at desc, id desc);

-- A webhook's queue. `due_at` is when a claim should look at it next, null when nothing waits.
create table lanes (
  webhook_id text /*postgres collate "C"*/ primary key references webhooks (id) on delete cascade,
  owner_id text /*postgres collate "C"*/ not null,
  active boolean not null,
  failing boolean not null,
  due_at bigint,
  wait_until bigint not null default 0
);
-- Healthy lanes are asked first, so that a restart into many dead receivers does not hold them up.
create index lanes_due on lanes (failing, due_at) where active and due_at is not null;

create table deliveries (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  event_id text /*postgres collate "C"*/ not null,
  webhook_id text /*postgres collate "C"*/ not null,
  origin text not null check (origin in ('event', 'replay', 'test')),
  state text not null check (state in
    ('ready', 'in_flight', 'held', 'delivered', 'exhausted', 'gone', 'cancelled', 'dead')),
  reason text,
  retry boolean not null,
  next_at bigint not null,
  tries bigint not null,
  attempts bigint not null,
  claim text,
  node_id text,
  record_id text not null,
  seq bigint not null,
  created_at bigint not null,
  finished_at bigint,
  last_outcome text,
  last_status bigint,
  replayed_by text
) /*sqlite without rowid*/;
create unique index deliveries_once on deliveries (event_id, webhook_id) where origin = 'event';
create index deliveries_again on deliveries (event_id, webhook_id) where origin <> 'event';
create index deliveries_ready on deliveries (webhook_id, retry, next_at) where state = 'ready';
create index deliveries_claimed on deliveries (node_id) where state = 'in_flight';
create index deliveries_held on deliveries (webhook_id, record_id, seq) where state = 'held';
create index deliveries_log on deliveries (webhook_id, id desc);
-- The ends that an owner looks for; deliveries that succeed pay nothing for it.
create index deliveries_ended on deliveries (webhook_id, state, id desc)
  where state in ('exhausted', 'gone', 'cancelled', 'dead');

-- Each row costs a write on the send path, so there is one index, and age is read off the delivery.
create table attempts (
  owner_id text /*postgres collate "C"*/ not null,
  delivery_id text /*postgres collate "C"*/ not null,
  webhook_id text /*postgres collate "C"*/ not null,
  event_id text /*postgres collate "C"*/ not null,
  number bigint not null,
  kind text not null check (kind in ('event', 'replay', 'test', 'probe')),
  outcome text not null,
  status bigint,
  error text,
  started_at bigint not null,
  dns_us bigint,
  connect_us bigint,
  tls_us bigint,
  first_byte_us bigint,
  total_us bigint not null,
  address text,
  url text not null,
  request_headers text not null,
  response_headers text,
  response_body bytea,
  truncated boolean not null,
  node_id text not null,
  primary key (delivery_id, number)
);

create table nodes (
  id text /*postgres collate "C"*/ primary key,
  epoch bigint not null,
  started_at bigint not null,
  alive_until bigint not null
);
