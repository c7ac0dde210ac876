-- The figures of the console's charts: how the attempts of a webhook ended, and how long they took,
-- in steps of five minutes and longer ones for older attempts. `result` is the outcome of attempts
-- that started in the step, or how deliveries ended in it without success: exhausted, gone, dead.
-- With the id of an owner it is `event`: events that occurred in the step. `t0` to `t13` count
-- attempts by their duration: up to 5 ms, up to 10 ms, and so on, each bound twice the one before;
-- the last has no bound. No reference to the webhook: a check of it would wait for its lock.
create table figures (
  subject_id text /*postgres collate "C"*/ not null,
  span bigint not null,
  at bigint not null,
  result text /*postgres collate "C"*/ not null,
  count bigint not null,
  total_us bigint not null,
  t0 integer not null, t1 integer not null, t2 integer not null, t3 integer not null,
  t4 integer not null, t5 integer not null, t6 integer not null, t7 integer not null,
  t8 integer not null, t9 integer not null, t10 integer not null, t11 integer not null,
  t12 integer not null, t13 integer not null,
  primary key (subject_id, at, span, result)
) /*sqlite without rowid*/ /*postgres with (fillfactor = 50)*/;
create index figures_age on figures (span, at);

-- Attempts and events from before this moment are not in the figures.
alter table outbox_state add column figures_since bigint not null default 0;
update outbox_state set figures_since =
  /*sqlite cast((julianday('now') - 2440587.5) * 86400000000.0 as integer)*/
  /*postgres cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)*/;
