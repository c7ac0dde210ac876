-- additive
-- How a file writes numbers and dates, what becomes of its faulty cells and of its repeated keys, and
-- what its cells have shown of that: numbers by column, see gateway.domain.imports.forms. `run` counts
-- the starts of an import, dry ones among them.
alter table imports add column separator text not null default ',';
alter table imports add column options text not null default '{}';
alter table imports add column shown text not null default '[]';
alter table imports add column run bigint not null default 0;
alter table imports add column warnings bigint not null default 0;
alter table imports add column kept_lines bigint not null default 0;
alter table imports add column kept_characters bigint not null default 0;

-- The beginning of the cell, and whether its line was imported without it.
alter table import_faults add column value text not null default '';
alter table import_faults add column warning boolean not null default false;

-- The lines with faults, as they were sent, so that a person can mend and send them again.
-- `record_id` is the record of a line that was imported without some of its cells.
create table import_faulty_lines (
  import_id text /*postgres collate "C"*/ not null references imports (id) on delete cascade,
  line bigint not null,
  record_id text /*postgres collate "C"*/,
  cells text not null,
  primary key (import_id, line)
);

-- Digests of the ids and keys of the lines that a running import has written, each with its line.
create table import_keys (
  import_id text /*postgres collate "C"*/ not null references imports (id) on delete cascade,
  digest text /*postgres collate "C"*/ not null,
  line bigint not null,
  primary key (import_id, digest)
) /*sqlite without rowid*/;
