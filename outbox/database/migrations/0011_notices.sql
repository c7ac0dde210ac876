-- Operational webhooks, and what the owners of webhooks are told.

-- An operational webhook gets events about the other webhooks of its account, and no others.
alter table webhooks add column operational boolean not null default false;
create index webhooks_operational on webhooks (owner_id) where operational;
-- How often something was told about this webhook: the version of its events.
alter table webhooks add column told bigint not null default 0;

-- The webhook that an event is about; null for events of records and for tests.
alter table events add column about_id text;

-- What is told to an owner by mail. Rows stay for a while, so that they count against the limit of
-- a day. `due_at` is null at the end.
create table notices (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  webhook_id text /*postgres collate "C"*/ not null,
  kind text /*postgres collate "C"*/ not null,
  reason text not null,
  created_at bigint not null,
  attempts bigint not null,
  due_at bigint,
  error text
);
create index notices_due on notices (due_at) where due_at is not null;
create index notices_owner on notices (owner_id, kind, created_at);
create index notices_age on notices (created_at);

-- For the banner of each page of the console.
create index webhooks_troubled on webhooks (owner_id)
  where state = 'disabled' or circuit <> 'closed';
