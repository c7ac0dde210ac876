-- additive
-- The stage `lines` of an erasure: the lines of imports that wait or had faults. `place` then has, as
-- JSON, how far each import was searched; it stays while records are erased.
-- `put_aside` counts the units that were too much: each one halves the next ones, and erasures that
-- were put aside less often go first.
alter table person_erasures add column put_aside bigint not null default 0;
drop index person_erasures_working;
create index person_erasures_working on person_erasures (owner_id, put_aside, id)
  where stage in ('lines', 'records', 'responses');
