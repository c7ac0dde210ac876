-- The records of the CRM, their running totals, and the answers kept for Idempotency-Key.

-- How many records of a kind an owner has, in 16 parts so that writers seldom meet; see store.tally.
create table tallies (
  owner_id text /*postgres collate "C"*/ not null,
  kind text /*postgres collate "C"*/ not null,
  slot bigint not null,
  n bigint not null,
  primary key (owner_id, kind, slot)
);

create table idempotency (
  owner_id text /*postgres collate "C"*/ not null,
  key text /*postgres collate "C"*/ not null,
  method text /*postgres collate "C"*/ not null,
  path text /*postgres collate "C"*/ not null,
  fingerprint bytea not null,
  status bigint,
  headers text,
  body bytea,
  created_at bigint not null,
  primary key (owner_id, key, method, path)
);
create index idempotency_old on idempotency (created_at);

create table companies (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  name text not null,
  cnpj text,
  cnpj_normal text /*postgres collate "C"*/,
  website text,
  industry text,
  size text,
  email text,
  phone text,
  phone_e164 text,
  notes text,
  folded text /*postgres collate "C"*/ not null,
  sort_name text /*postgres collate "C"*/ not null
);
-- The default order; `folded` rides along so that a search reads the index alone.
create index companies_newest on companies (owner_id, created_at desc, id desc, folded);
create index companies_changed on companies (owner_id, (coalesce(updated_at, created_at)), id);
create index companies_name on companies (owner_id, sort_name, id);
create index companies_cnpj on companies (owner_id, cnpj_normal) where cnpj_normal is not null;

create table contacts (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  name text not null,
  email text,
  phone text,
  phone_e164 text,
  position text,
  notes text,
  company_id text /*postgres collate "C"*/,
  tags text not null,
  source text not null,
  consent boolean,
  folded text /*postgres collate "C"*/ not null,
  sort_name text /*postgres collate "C"*/ not null
);
create index contacts_newest on contacts (owner_id, created_at desc, id desc, folded);
create index contacts_changed on contacts (owner_id, (coalesce(updated_at, created_at)), id);
create index contacts_name on contacts (owner_id, sort_name, id);
create index contacts_company on contacts (owner_id, company_id) where company_id is not null;

create table contact_tags (
  owner_id text /*postgres collate "C"*/ not null,
  value text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null references contacts (id) on delete cascade,
  primary key (owner_id, value, record_id)
);
create index contact_tags_record on contact_tags (record_id);
