-- E-books that a store gives for the data of a lead.

create table ebooks (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text /*postgres collate "C"*/ not null,
  title text not null,
  file_url text not null,
  active boolean not null,
  folded text /*postgres collate "C"*/ not null,
  sort_name text /*postgres collate "C"*/ not null
);
create index ebooks_newest on ebooks (owner_id, created_at desc, id desc, folded);
create index ebooks_changed on ebooks (owner_id, (coalesce(updated_at, created_at)), id);
create index ebooks_title on ebooks (owner_id, sort_name, id);
create index ebooks_store on ebooks (owner_id, store_id);
