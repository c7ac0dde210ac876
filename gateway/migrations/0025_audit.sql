-- Who changed which record, and which of its fields: names, never values. An id begins with its
-- time, which is that of the entry. No other table refers to a row, and none is looked up for one:
-- each write of a record adds one, so it must cost little.
-- additive
create table audit (
  owner_id text /*postgres collate "C"*/ not null,
  id text /*postgres collate "C"*/ not null,
  actor text not null,
  actor_id text,
  action text not null,
  resource text not null,
  record_id text /*postgres collate "C"*/,
  fields text not null,
  request_id text,
  primary key (owner_id, id)
) /*sqlite without rowid*/;
create index audit_records on audit (record_id, id);
