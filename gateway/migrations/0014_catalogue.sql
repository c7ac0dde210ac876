-- Products in stores: their slugs, their places in lists, and the categories of a store.

create index products_store on products (owner_id, store_id) where store_id is not null;

create table product_slugs (
  store_id text /*postgres collate "C"*/ not null,
  value text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null references products (id) on delete cascade,
  primary key (store_id, value)
);
create index product_slugs_record on product_slugs (record_id);

-- The products that a store shows, once with the value '' and once for each of their categories,
-- folded. The columns that order lists ride along, so that every page is read from an index.
create table product_shelves (
  record_id text /*postgres collate "C"*/ not null references products (id) on delete cascade,
  value text /*postgres collate "C"*/ not null,
  store_id text /*postgres collate "C"*/ not null,
  created_at bigint not null,
  sort_name text /*postgres collate "C"*/ not null,
  price bigint not null,
  primary key (record_id, value)
);
create index product_shelves_newest
  on product_shelves (store_id, value, created_at desc, record_id desc);
create index product_shelves_name on product_shelves (store_id, value, sort_name, record_id);
create index product_shelves_price on product_shelves (store_id, value, price, record_id);

create table categories (
  id text /*postgres collate "C"*/ primary key,
  owner_id text /*postgres collate "C"*/ not null,
  version bigint not null,
  created_at bigint not null,
  updated_at bigint,
  store_id text /*postgres collate "C"*/ not null,
  name text not null,
  slug text /*postgres collate "C"*/,
  parent_id text /*postgres collate "C"*/,
  folded text /*postgres collate "C"*/ not null,
  sort_name text /*postgres collate "C"*/ not null
);
create index categories_newest on categories (owner_id, created_at desc, id desc, folded);
create index categories_changed on categories (owner_id, (coalesce(updated_at, created_at)), id);
create index categories_name on categories (owner_id, sort_name, id);
create index categories_store on categories (owner_id, store_id, sort_name, id);
create index categories_parent on categories (owner_id, parent_id) where parent_id is not null;

create table category_names (
  store_id text /*postgres collate "C"*/ not null,
  value text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null references categories (id) on delete cascade,
  primary key (store_id, value)
);
create index category_names_record on category_names (record_id);

create table category_slugs (
  store_id text /*postgres collate "C"*/ not null,
  value text /*postgres collate "C"*/ not null,
  record_id text /*postgres collate "C"*/ not null references categories (id) on delete cascade,
  primary key (store_id, value)
);
create index category_slugs_record on category_slugs (record_id);
