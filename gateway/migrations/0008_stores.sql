-- Stores and the hostnames that name them.

create table stores (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  hostname text /*postgres collate "C"*/ not null,
  name text not null,
  aliases text not null,
  allowed_origins text not null,
  idps text not null,
  shipping_rules text not null,
  cookie_same_site text /*postgres collate "C"*/ not null,
  deal_on_checkout boolean not null,
  review_moderation boolean not null,
  one_review_each boolean not null,
  pix_key text,
  active boolean not null,
  folded text /*postgres collate "C"*/ not null,
  sort_name text /*postgres collate "C"*/ not null
);
create index stores_newest on stores (owner_id, created_at desc, id desc, folded);
create index stores_changed on stores (owner_id, (coalesce(updated_at, created_at)), id);
create index stores_name on stores (owner_id, sort_name, id);

-- Every hostname and alias of a store; a name belongs to one store of the installation.
create table store_hosts (
  value text /*postgres collate "C"*/ primary key,
  record_id text /*postgres collate "C"*/ not null references stores (id) on delete cascade
);
create index store_hosts_record on store_hosts (record_id);
