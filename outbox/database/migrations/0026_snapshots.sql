-- additive
-- Jobs of the kind `snapshot`: an event for each record that is there, for one webhook. `names` are
-- the events, `place` is the one that the job is at, and (`reached_at`, `reached`) the time of
-- creation and the id of the last record of its kind. SQLite cannot change a check, so the few rows
-- are copied.
/*postgres
alter table jobs drop constraint jobs_kind_check;
alter table jobs add constraint jobs_kind_check
  check (kind in ('recover', 'backfill', 'snapshot'));
alter table jobs add column reached_at bigint not null default 0;
alter table jobs add column reached text collate "C" not null default '';
*/
/*sqlite
create table newer_jobs (
  id text primary key,
  owner_id text not null,
  webhook_id text not null references webhooks (id) on delete cascade,
  user_id text not null,
  kind text not null check (kind in ('recover', 'backfill', 'snapshot')),
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
  finished_at bigint,
  reason text,
  reached_at bigint not null default 0,
  reached text not null default ''
);
insert into newer_jobs (id, owner_id, webhook_id, user_id, kind, state, ends, names, since_at,
  until_at, place, last_seq, rate, total, made, refused, created_at, paced_at, finished_at, reason)
select id, owner_id, webhook_id, user_id, kind, state, ends, names, since_at, until_at, place,
  last_seq, rate, total, made, refused, created_at, paced_at, finished_at, reason
from jobs;
drop table jobs;
alter table newer_jobs rename to jobs;
create index jobs_webhook on jobs (webhook_id, id desc);
create index jobs_running on jobs (owner_id, id) where state = 'running';
create index jobs_finished on jobs (finished_at) where finished_at is not null;
*/

-- `about_id` of such an event is the id of its job. Erasures find a person's events by this index,
-- as by events_record those of the feed.
create index events_about on events (owner_id, record_id, seq)
where about_id is not null and seq is not null;
