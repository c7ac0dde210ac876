-- Deals with their running totals, the pipelines that order them, tasks and activities.

create table deals (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  title text not null,
  value bigint not null,
  currency text not null,
  stage text /*postgres collate "C"*/,
  status text /*postgres collate "C"*/ not null,
  probability bigint,
  company_id text /*postgres collate "C"*/,
  contact_ids text not null,
  expected_close_at bigint,
  expected_close_day boolean,
  closed_at bigint,
  lost_reason text
);
create index deals_newest on deals (owner_id, created_at desc, id desc);
create index deals_changed on deals (owner_id, (coalesce(updated_at, created_at)), id);
create index deals_status on deals (owner_id, status, created_at desc, id desc);
create index deals_stage on deals (owner_id, stage, created_at desc, id desc);
create index deals_value on deals (owner_id, value, id);
-- Without a date means last: the engines disagree where nulls stand.
create index deals_close
  on deals (owner_id, (coalesce(expected_close_at, 9223372036854775807)), id);
create index deals_company on deals (owner_id, company_id) where company_id is not null;

create table deal_contacts (
  owner_id text /*postgres collate "C"*/ not null,
  value text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null references deals (id) on delete cascade,
  primary key (owner_id, value, record_id)
);
create index deal_contacts_record on deal_contacts (record_id);

-- How many deals of an owner stand where, and their value, so that pipeline-stats counts nothing.
-- `stage` is '' for deals without one. `slot` is the last digit of a deal's id, so that writers
-- seldom meet. A row goes when its last deal does.
create table deal_totals (
  owner_id text /*postgres collate "C"*/ not null,
  stage text /*postgres collate "C"*/ not null,
  status text /*postgres collate "C"*/ not null,
  slot text /*postgres collate "C"*/ not null,
  n bigint not null,
  value bigint not null,
  primary key (owner_id, stage, status, slot)
);

-- Triggers, so that no way to write a deal can forget the totals. SQLite has no functions.
/*sqlite
create trigger deals_come after insert on deals begin
  insert into deal_totals (owner_id, stage, status, slot, n, value)
  values (new.owner_id, coalesce(new.stage, ''), new.status, substr(new.id, 24), 1, new.value)
  on conflict (owner_id, stage, status, slot)
  do update set n = n + excluded.n, value = value + excluded.value;
end;
create trigger deals_go after delete on deals begin
  update deal_totals set n = n - 1, value = value - old.value
  where owner_id = old.owner_id and stage = coalesce(old.stage, '') and status = old.status
    and slot = substr(old.id, 24);
  delete from deal_totals
  where owner_id = old.owner_id and stage = coalesce(old.stage, '') and status = old.status
    and slot = substr(old.id, 24) and n = 0;
end;
create trigger deals_move after update of stage, status, value on deals begin
  insert into deal_totals (owner_id, stage, status, slot, n, value)
  values (new.owner_id, coalesce(new.stage, ''), new.status, substr(new.id, 24), 1, new.value)
  on conflict (owner_id, stage, status, slot)
  do update set n = n + excluded.n, value = value + excluded.value;
  update deal_totals set n = n - 1, value = value - old.value
  where owner_id = old.owner_id and stage = coalesce(old.stage, '') and status = old.status
    and slot = substr(old.id, 24);
  delete from deal_totals
  where owner_id = old.owner_id and stage = coalesce(old.stage, '') and status = old.status
    and slot = substr(old.id, 24) and n = 0;
end;
*/
-- The rows that one deal touches are locked in the order of their keys, so that deals which move
-- in opposite directions cannot wait for each other.
/*postgres
create function count_deals() returns trigger language plpgsql as $$
begin
  insert into deal_totals as kept (owner_id, stage, status, slot, n, value)
  select owner_id, stage, status, slot, sum(n), sum(value) from (
    select old.owner_id, coalesce(old.stage, ''), old.status, right(old.id, 1), -1, -old.value
    where tg_op <> 'INSERT'
    union all
    select new.owner_id, coalesce(new.stage, ''), new.status, right(new.id, 1), 1, new.value
    where tg_op <> 'DELETE'
  ) as moved (owner_id, stage, status, slot, n, value)
  group by owner_id, stage, status, slot
  order by owner_id, stage, status, slot
  on conflict (owner_id, stage, status, slot)
  do update set n = kept.n + excluded.n, value = kept.value + excluded.value;
  if tg_op <> 'INSERT' then
    delete from deal_totals
    where owner_id = old.owner_id and stage = coalesce(old.stage, '') and status = old.status
      and slot = right(old.id, 1) and n = 0;
  end if;
  return null;
end
$$;
create trigger deals_counted after insert or delete or update of stage, status, value on deals
  for each row execute function count_deals();
*/

-- The stages of an owner's deals in their order; an owner without a row has the default ones.
create table pipelines (
  owner_id text /*postgres collate "C"*/ primary key,
  stages text not null,
  strict boolean not null,
  version bigint not null
);

create table tasks (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  title text not null,
  description text,
  due_at bigint,
  due_day boolean,
  priority text /*postgres collate "C"*/ not null,
  completed boolean not null,
  completed_at bigint,
  contact_id text /*postgres collate "C"*/,
  deal_id text /*postgres collate "C"*/
);
create index tasks_newest on tasks (owner_id, created_at desc, id desc);
create index tasks_changed on tasks (owner_id, (coalesce(updated_at, created_at)), id);
create index tasks_completed on tasks (owner_id, completed, created_at desc, id desc);
create index tasks_priority on tasks (owner_id, priority, created_at desc, id desc);
create index tasks_due on tasks (owner_id, (coalesce(due_at, 9223372036854775807)), id);
-- What is overdue or due soon; `due_day` rides along so that counting reads the index alone.
create index tasks_open on tasks (owner_id, due_at, id, due_day) where completed_at is null;
create index tasks_contact on tasks (owner_id, contact_id) where contact_id is not null;
create index tasks_deal on tasks (owner_id, deal_id) where deal_id is not null;

create table activities (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  type text /*postgres collate "C"*/ not null,
  description text not null,
  related_id text /*postgres collate "C"*/ not null,
  related_type text /*postgres collate "C"*/ not null,
  metadata text,
  created_by text /*postgres collate "C"*/ not null
);
create index activities_newest on activities (owner_id, created_at desc, id desc);
create index activities_changed on activities (owner_id, (coalesce(updated_at, created_at)), id);
create index activities_related on activities (owner_id, related_id, created_at desc, id desc);
