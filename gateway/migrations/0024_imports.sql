-- additive
-- Imports of records from CSV files. The lines of a file are personal data: each goes in the
-- transaction that writes its record, and all that are left when the import ends.

-- `fields` has the field of each heading, empty for a column that is left out. `place` is the last
-- line that is done, `done` how many; `held` keeps the lines after a dry run. `lines_left` marks an
-- ended import whose lines are still being deleted. `paced_at` is the time of the last step.
create table imports (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  plural text /*postgres collate "C"*/ not null,
  state text not null check (state in
    ('uploading', 'waiting', 'running', 'done', 'failed', 'cancelled')),
  dry_run boolean not null,
  held boolean not null,
  lines_left boolean not null default true,
  headings text not null,
  fields text not null,
  encoding text not null,
  line_count bigint not null default 0,
  place bigint not null default 0,
  done bigint not null default 0,
  created bigint not null default 0,
  updated bigint not null default 0,
  unchanged bigint not null default 0,
  faulty bigint not null default 0,
  reason text,
  created_at bigint not null,
  paced_at bigint not null,
  finished_at bigint
);
create index imports_owner on imports (owner_id, id desc);
create index imports_open on imports (paced_at, id) where lines_left = true;
create index imports_finished on imports (finished_at) where finished_at is not null;

create table import_lines (
  import_id text /*postgres collate "C"*/ not null references imports (id) on delete cascade,
  line bigint not null,
  cells text not null,
  primary key (import_id, line)
);

create table import_faults (
  import_id text /*postgres collate "C"*/ not null references imports (id) on delete cascade,
  nth bigint not null,
  line bigint not null,
  heading text not null,
  error text not null,
  primary key (import_id, nth)
);
