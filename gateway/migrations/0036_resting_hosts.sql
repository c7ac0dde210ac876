-- additive
-- A hostname that a store gave up rests: until `free_at` only the owner that had it may take it.
-- Links and DNS records may still lead to it, and whoever takes it gets their visitors.
create table freed_hosts (
  value text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  free_at bigint not null
);
create index freed_hosts_free on freed_hosts (free_at);
create index freed_hosts_owner on freed_hosts (owner_id);

-- The hostnames of the installation itself, which no store may have: a start of the server writes
-- them from its configuration.
create table reserved_hosts (
  value text /*postgres collate "C"*/ primary key
);

-- The proof of a hostname by DNS: when it was last found and last looked for, and what is wrong.
alter table store_hosts add column proven_at bigint;
alter table store_hosts add column asked_at bigint not null default 0;
alter table store_hosts add column fault text;
create index store_hosts_asked on store_hosts (asked_at);
